"""Arrays of other ranks in place, flags and a watch on two hosts, and when a rank dies.

For ranks of one host see test_promises.py.
"""

from pathlib import Path

import pytest

from tests.starting import Start, Survivors

PROGRAMS = Path(__file__).parent / "ranks"
ON_HOSTS = Path(__file__).parent / "hierarchical/ranks/on_hosts.py"

pytestmark = pytest.mark.ranks


def test_on_two_hosts_ranks_share_with_those_of_their_own(mpirun: Start) -> None:
    done = mpirun(ON_HOSTS, 3, "0,0,1", str(PROGRAMS / "sharing_on_hosts.py"))
    assert done.output.count("shared") == 3


def test_a_rank_that_dies_ends_each_wait_for_it(survivors: Survivors) -> None:
    seen = survivors(PROGRAMS / "sharing_deaths.py", 5, "direct", "flag,test,attach,watch")
    assert seen.keys() == set("0123")
    assert all("rank 4 died" in words for words in seen.values()), seen


def test_a_watch_sees_deaths_on_other_hosts(survivors: Survivors) -> None:
    hosts = (ON_HOSTS, 3, "0,1,0", str(PROGRAMS / "sharing_deaths.py"))
    seen = survivors(*hosts, "mpi", "watch,watch")
    assert seen.keys() == set("01")
    assert all("rank 2 died" in words for words in seen.values()), seen
