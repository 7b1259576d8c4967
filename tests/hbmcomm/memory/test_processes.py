"""Real processes share memory: alike on all of them, against an intruder, and past a death."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.left import nothing_left
from tests.starting import Start, Survivors

pytestmark = pytest.mark.ranks

RANKS = Path(__file__).parent / "ranks"


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    with nothing_left("hbmcomm.*"):
        yield


def test_processes_share_memory_for_as_many_communicators_as_they_like(mpirun: Start) -> None:
    assert mpirun(RANKS / "shared_memory.py", 3).output.count("shared") == 3


def test_an_intruder_of_the_same_user_does_no_harm(mpirun: Start, tmp_path: Path) -> None:
    found = mpirun(RANKS / "intruder.py", 3, str(tmp_path))
    assert found.output.count("unharmed") == 2


@pytest.mark.parametrize("mpi", MPIS)
def test_a_rank_that_is_killed_is_noticed_and_not_waited_for(
    survivors: Survivors, mpi: str
) -> None:
    seen = survivors(RANKS / "death.py", 3, mpi=mpi)
    assert seen == {"rank0": "noticed", "rank1": "noticed"}
