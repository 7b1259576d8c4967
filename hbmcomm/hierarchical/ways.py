"""What every operation over several hosts needs: hosts, the core inside, messages between.

Model: hierarchical/wire.pml
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hbmcomm.hierarchical.between import Range, split
from hbmcomm.hierarchical.grouping import Layout
from hbmcomm.hierarchical.inside import Inside
from hbmcomm.hierarchical.settings import Settings
from hbmcomm.hierarchical.wire import Flight, Wire
from hbmcomm.quantities import KIB, MIB
from hbmcomm.transports.message import Bytes

_LEAST_MESSAGE = 32 * KIB
"""Bytes of each message of a slice at least, however many hosts share it."""
_AT_ONCE = 3
"""Slices on their way between hosts at a time. More of them would share the links, be there
together at the end, and only then be shared inside each host."""


class Slicing(NamedTuple):
    """How a message goes in slices. The first and the last one leave links idle, and each takes
    time of a CPU.

    Attributes:
        slices: Of a message for which these are neither too short nor too long.
        least, most: Bytes of a leader's slice.
    """

    slices: int
    least: int
    most: int


SPLIT = Slicing(4, 512 * KIB, 2 * MIB)
"""Hosts exchange parts of each slice."""
WHOLE = Slicing(16, 128 * KIB, 512 * KIB)
"""Each slice goes whole from host to host."""


class Ways(NamedTuple):
    """One rank's ways to all others of a communicator."""

    layout: Layout
    inside: Inside
    wire: Wire
    settings: Settings

    def slices(self, count: int, entry: int, how: Slicing) -> list[Range]:
        """Ranges of entries that go one after the other, about equal, at least one."""
        leaders = self.layout.leaders
        messages = len(self.layout.hosts) if how is SPLIT else 1
        wanted = max(count * entry // leaders // how.slices, how.least)
        longest = self.settings.segment_bytes or how.most
        nbytes = max(min(wanted, longest), _LEAST_MESSAGE * messages)
        most = max(nbytes * leaders // entry, 1)
        return split((0, count), max(-(-count // most), 1))

    def pipeline(
        self,
        slices: list[Range],
        begin: Callable[[int, Range], Flight | None],
        end: Callable[[Range], None],
    ) -> None:
        """Do something with each slice before and after its way between hosts.

        Links do not wait for what follows a slice: the next one begins before that.

        Args:
            begin: Returns the flight of slice number so and so; None where this rank only waits.
            end: All ranks of a host call it for the same slices in the same order.
        """
        flying: deque[tuple[Range, Flight | None]] = deque()
        for number, each in enumerate(slices):
            over = self._land(*flying.popleft()) if len(flying) == _AT_ONCE else None
            flying.append((each, begin(number, each)))
            if over:
                end(over)
        while flying:
            end(self._land(*flying.popleft()))

    def _land(self, entries: Range, flight: Flight | None) -> Range:
        if flight is not None:
            self.wire.finish(flight)
        return entries


def scratch(nbytes: int) -> Bytes:
    """Memory for one call."""
    return np.empty(max(nbytes, 1), np.uint8)


def distances(begin: int, hosts: int) -> Iterator[int]:
    """All other hosts, the next one first: no two hosts begin with the same one."""
    return ((begin + distance) % hosts for distance in range(1, hosts))
