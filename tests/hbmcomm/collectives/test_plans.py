"""Persistent calls: started, waited for and tested as MPI has it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.model.environment import MPIS

PROGRAM = Path(__file__).parents[1] / "ranks" / "plans.py"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("mpi", MPIS)
def test_a_plan_is_what_mpi_says(kept: Callable[..., None], mpi: str, promise: str) -> None:
    kept(PROGRAM, 2, promise, mpi=mpi, timeout=60)
