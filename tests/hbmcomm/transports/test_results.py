"""Sums have the same bits on every rank and in each run; test_random_programs.py has the rest."""

from pathlib import Path

import pytest

from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


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
        job = mpirun(PROGRAMS / "same_bits.py", ranks, "direct", mpi=mpi)
        lines = [line for line in job.output.splitlines() if line.startswith("digest ")]
        assert len(lines) == ranks, job.output
        digests |= set(lines)
    assert len(digests) == 1
