"""Remote regions between real ranks, in shared memory and by MPI's one-sided calls."""

import re
from pathlib import Path

import pytest

from tests.starting import Start

RANKS = Path(__file__).parent / "ranks"
ON_HOSTS = Path(__file__).parents[2] / "hierarchical/ranks/on_hosts.py"

pytestmark = pytest.mark.ranks


def test_ranks_that_share_memory_exchange_tensors_without_copies(mpirun: Start) -> None:
    assert mpirun(RANKS / "exchange.py", 2, "direct").output.count("all right") == 2


def test_ranks_without_common_memory_exchange_the_same_tensors(mpirun: Start) -> None:
    assert mpirun(RANKS / "exchange.py", 2, "mpi", mpi="mpich").output.count("all right") == 2


def test_on_two_hosts_each_pair_takes_what_it_shares(mpirun: Start) -> None:
    job = mpirun(ON_HOSTS, 3, "0,0,1", str(RANKS / "exchange.py"), "hierarchical", mpi="mpich")
    assert job.output.count("all right") == 3


LEAVING = [
    (transport, who, way)
    for transport in ("direct", "mpi")
    for who in ("consumer", "producer")
    for way in ("collected", "error in with", "closed", "sys.exit", "exception", "signal")
]
IN_CI = {("direct", "consumer", "collected"), ("mpi", "consumer", "error in with")}


@pytest.mark.parametrize(
    ("transport", "who", "way"),
    [pytest.param(*case, marks=[pytest.mark.rare] * (case not in IN_CI)) for case in LEAVING],
)
def test_an_end_that_leaves_takes_no_memory_away_that_the_other_still_uses(
    mpirun: Start, transport: str, who: str, way: str
) -> None:
    output = mpirun(RANKS / "leaving.py", 2, way, who, transport, code=None, survivors=True).output
    stays = 1 if who == "consumer" else 0
    expected = rf"^rank {stays}: (done|rank \d (died|has left|gave up))"
    assert re.search(expected, output, re.MULTILINE), output
    assert "rank 0: right" in output and "wrong" not in output, output
    assert f"rank {1 - stays}: mine" in output or way in ("sys.exit", "exception", "signal"), output
