"""On emulated hosts: what links carry, and what ranks see of a host that vanishes."""

import threading
import time
from pathlib import Path

import pytest

from tests.awaiting import seconds_until
from tests.starting import MakeHosts, Start

RANKS = Path(__file__).parent / "ranks"
MIB = 2**20
HEADERS = 1.04
"""Ethernet, IP and TCP, of packets up to 64 KiB as they pass between namespaces, and of replies."""
SOON = 9.0  # seconds until a host that answers no more is given up

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(("mpi", "packed"), [("openmpi", True), ("mpich", False)])
def test_each_link_carries_what_the_formula_says_however_ranks_are_placed(
    hosts: MakeHosts, mpirun_on: Start, mpi: str, packed: bool
) -> None:
    made = hosts(4)
    places = made.packed(2) if packed else made.in_turn(8)
    found = mpirun_on(made, places, RANKS / "carried.py", str(MIB), mpi=mpi)
    (line,) = [each for each in found.output.splitlines() if each.startswith("carried ")]
    least, most = (float(each) / (2 * 3 / 4 * MIB) for each in line.split()[1:])
    assert 1.0 < least <= most < HEADERS, found


def test_survivors_learn_of_a_host_that_vanishes(
    hosts: MakeHosts, mpirun_on: Start, tmp_path: Path
) -> None:
    made = hosts(2)
    launch = threading.Thread(
        target=mpirun_on,
        args=(made, made.packed(2), RANKS / "until_a_loss.py", str(tmp_path), "1"),
        kwargs={"mpi": "mpich", "code": None, "survivors": True},
    )
    launch.start()
    try:
        while len(list(tmp_path.glob("going-*"))) < 4:
            assert launch.is_alive()
            time.sleep(0.1)
        cut = time.time()
        made.cut("n2")
        seconds_until(lambda: len(list(tmp_path.glob("seen-*"))) == 4, 2 * SOON)
        seen = {path.name: path.read_text("utf-8") for path in tmp_path.glob("seen-*")}
        assert len(seen) == 4, seen
        for words in seen.values():
            moment, _, what = words.partition(" ")
            assert what.startswith("PeerError: rank "), seen
            assert float(moment) - cut < SOON, seen
    finally:
        made.end()
        launch.join()
