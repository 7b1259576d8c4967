"""A Communicator is the mpi4py communicator that it wraps, under every MPI and transport."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RANKS = Path(__file__).parent / "ranks"
MPIS = ("openmpi", "mpich", "impi")

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("transport", ["mpi", "pickle"])
@pytest.mark.parametrize("mpi", MPIS)
def test_random_calls_give_what_mpi4py_gives(
    mpirun: Callable[..., Any], mpi: str, transport: str, ranks: int
) -> None:
    found = mpirun(RANKS / "same_as_mpi4py.py", ranks, transport, "150", mpi=mpi, timeout=200)
    assert f"150 cases alike on {ranks} ranks" in found.output


@pytest.mark.parametrize("mpi", MPIS)
def test_the_drop_in_contract_holds(mpirun: Callable[..., Any], mpi: str) -> None:
    found = mpirun(RANKS / "drop_in.py", 3, mpi=mpi)
    assert found.output.count("kept") == 3
