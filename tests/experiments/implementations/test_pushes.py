"""Pushes of tensors carry what was computed, and count what they copy."""

import importlib.util
from pathlib import Path

import pytest

from experiments.model.workloads import PUSH, WORKLOADS
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "pushes.py"


@pytest.mark.ranks
def test_every_contender_carries_the_same_tensors(mpirun: Start, tmp_path: Path) -> None:
    output = mpirun(PROGRAM, 2, str(tmp_path)).output
    without_torch = importlib.util.find_spec("torch") is None
    assert output.count("right: ") == len(WORKLOADS[PUSH].contenders) - without_torch


@pytest.mark.ranks
def test_a_push_of_three_ranks_is_left_out_with_the_reason(mpirun: Start) -> None:
    output = mpirun(PROGRAM, 3, mpi="mpich").output
    assert output.count("found 3 ranks; ask for --ranks 2") == 3
