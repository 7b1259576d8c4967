"""Counters of links: which interfaces count, and differences between readings."""

from pathlib import Path

from experiments.machine.facts import Traffic
from experiments.machine.links import traffic

COUNTERS = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:  900      9    0    0    0     0          0         0      900       9    0    0
  eth0: 1000     10    0    0    0     0          0         0       70       7    0    0
  eth1:  200      2    0    0    0     0          0         0        5       1    0    0
"""


def test_all_interfaces_count_but_the_loopback(tmp_path: Path) -> None:
    counters = tmp_path / "dev"
    counters.write_text(COUNTERS)
    assert traffic(counters) == Traffic(sent=75, received=1200)
    first, second = Traffic(10, 20), Traffic(17, 50)
    assert second.since(first) == Traffic(7, 30)
    assert first.plus(second.since(first)) == second
