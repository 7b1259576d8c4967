"""DASO on real ranks does what a replay of the paper's rules does."""

import re
from pathlib import Path

import pytest

from tests.starting import MakeHosts, Start

HERE = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


def test_training_is_as_replayed_on_one_rank_and_goes_on_from_a_saved_state(mpirun: Start) -> None:
    job = mpirun(HERE / "replayed.py", 4, "1", "5")
    assert job.output.count("as replayed") == 4


def test_links_between_hosts_carry_at_most_a_third_of_a_blocking_epochs_bytes(
    hosts: MakeHosts, mpirun_on: Start
) -> None:
    two = hosts(2, "1gbit")
    before = two.traffic("n1").sent
    job = mpirun_on(two, two.packed(2), HERE / "traffic.py")
    seen = [tuple(map(int, pair)) for pair in re.findall(r"sent (\d+) (\d+)", job.output)]
    assert len(seen) == 4
    assert all(blocking >= 32 * 400_000 and 3 * daso < blocking for blocking, daso in seen)
    assert two.traffic("n1").sent - before >= sum(seen[0])
