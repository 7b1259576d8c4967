"""Pushes of tensors carry what was computed, and count what they copy."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.model.systems.regions import PUSH, PUSHED_NETWORKS
from experiments.model.workloads import WORKLOADS
from hbmcomm.training.networks import gradients

PROGRAM = Path(__file__).parent / "ranks" / "pushes.py"


def test_the_bytes_of_a_push_are_those_of_its_network() -> None:
    for operation, network in PUSHED_NETWORKS.items():
        elements = sum(count for _, count in gradients(network))
        assert WORKLOADS[operation].nbytes == 4 * elements


@pytest.mark.ranks
def test_every_contender_carries_the_same_tensors(mpirun: Callable[..., Any]) -> None:
    found = mpirun(PROGRAM, 2).output
    without_torch = importlib.util.find_spec("torch") is None
    assert found.count("right: ") == len(WORKLOADS[PUSH].contenders) - without_torch


@pytest.mark.ranks
def test_a_push_of_three_ranks_is_left_out_with_the_reason(mpirun: Callable[..., Any]) -> None:
    found = mpirun(PROGRAM, 3, mpi="mpich").output
    assert found.count("found 3 ranks; ask for --ranks 2") == 3
