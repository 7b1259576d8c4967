"""After Ctrl-C, calls that differ and lost ranks: errors on all ranks, and memory is left alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.model.environment import MPIS

PROGRAM = Path(__file__).parents[1] / "ranks" / "interrupts.py"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("mpi", MPIS)
def test_what_ends_a_call_ends_it_everywhere_and_spoils_nothing(
    kept: Callable[..., None], mpi: str, promise: str
) -> None:
    kept(PROGRAM, 2, promise, mpi=mpi, timeout=60)
