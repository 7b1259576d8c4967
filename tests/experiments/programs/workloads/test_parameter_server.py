"""Contenders of a parameter server leave the weights that SGD with momentum gives."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "ranks" / "parameter_server.py"


@pytest.mark.ranks
def test_each_contender_is_right(mpirun: Callable[..., Any]) -> None:
    assert mpirun(PROGRAM, 2).output.split().count("right") == 2
