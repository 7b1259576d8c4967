"""Contenders of a parameter server leave the weights that SGD with momentum gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.model.workloads import PARAMETERS
from hbmcomm.training.networks import gradients

PROGRAM = Path(__file__).parent / "ranks" / "parameter_server.py"


@pytest.mark.ranks
def test_each_contender_is_right(mpirun: Callable[..., Any]) -> None:
    assert mpirun(PROGRAM, 2).output.split().count("right") == 2


@pytest.mark.parametrize("network", PARAMETERS)
def test_a_cell_has_the_bytes_of_the_networks_gradients(network: str) -> None:
    assert PARAMETERS[network] == sum(elements for _, elements in gradients(network))
