"""Collectives give the right bits: mpi4py's, NumPy's, the same on every rank and in each run."""

from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"
CALLS = {1: 150, 2: 200, 3: 150, 4: 100, 5: 60, 8: 15}
"""How many random calls are compared, by the number of ranks."""
UNDER = {
    1: ("openmpi",),
    2: MPIS,
    3: MPIS,
    4: ("mpich", "impi"),
    5: ("openmpi", "mpich"),
    8: ("impi",),
}
"""The MPIs that start them; with transport direct the core moves the data under each."""
RARE = {(2, "mpich"), (3, "mpich"), (4, "mpich"), (5, "openmpi")}
"""More ranks than cores under launchers whose ranks start slowly."""
TRANSPORTS = ("direct", "mpi", "pickle")

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("ranks", "mpi"),
    [
        pytest.param(n, mpi, marks=[pytest.mark.rare] * ((n, mpi) in RARE))
        for n in CALLS
        for mpi in UNDER[n]
    ],
)
def test_random_calls_give_what_mpi4py_and_numpy_give(mpirun: Start, mpi: str, ranks: int) -> None:
    calls, seed = CALLS[ranks], 100 * ranks + MPIS.index(mpi)
    numbers = (str(seed), str(calls))
    found = mpirun(PROGRAMS / "random_calls.py", ranks, ",".join(TRANSPORTS), *numbers, mpi=mpi)
    for transport in TRANSPORTS:
        assert f"{transport}: alike" in found.output, found.output


@pytest.mark.parametrize(
    ("ranks", "mpis"),
    [
        pytest.param(2, ["openmpi"], marks=pytest.mark.rare),
        (3, ["openmpi", "mpich"]),
        pytest.param(5, ["mpich"], marks=pytest.mark.rare),
    ],
)
def test_sums_of_random_floats_are_those_in_rank_order_on_all_ranks_and_in_every_run(
    mpirun: Start, ranks: int, mpis: list[str]
) -> None:
    digests = set()
    for mpi in mpis:
        found = mpirun(PROGRAMS / "direct_same_bits.py", ranks, "direct", mpi=mpi)
        lines = [line for line in found.output.splitlines() if line.startswith("digest ")]
        assert len(lines) == ranks, found.output
        digests |= set(lines)
    assert len(digests) == 1
