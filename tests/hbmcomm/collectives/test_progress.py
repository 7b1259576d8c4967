"""Whoever waits, for us or for MPI, lets everything else go on: MPI-4.1, section 3.9."""

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.model.environment import MPIS

PROGRAM = Path(__file__).parents[1] / "ranks" / "progress.py"
NO_SINGLE_COPY = {
    "openmpi": {"OMPI_MCA_smsc": "^cma,xpmem,knem"},
    "mpich": {"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
    "impi": {},
}
"""As in a container that may not read other processes' memory: there a long message needs its
sender while it is received."""

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("mpi", MPIS)
def test_a_wait_lets_everything_else_go_on(
    kept: Callable[..., None], mpi: str, promise: str
) -> None:
    kept(PROGRAM, 2, promise, mpi=mpi, env=NO_SINGLE_COPY[mpi], timeout=60)
