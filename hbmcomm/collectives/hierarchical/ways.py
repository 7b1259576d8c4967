"""What every operation over several hosts needs: hosts, the core inside, messages between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hbmcomm.collectives.buffers.message import Bytes
from hbmcomm.collectives.hierarchical.between.steps import Range
from hbmcomm.collectives.hierarchical.hosts.layout import Layout
from hbmcomm.collectives.hierarchical.inside import Inside
from hbmcomm.collectives.hierarchical.settings import Settings
from hbmcomm.collectives.hierarchical.wire import Flight, Wire
from hbmcomm.quantities import KIB

_IN_FLIGHT = 7
"""Slices on their way between hosts while ranks of one host work on the next."""
_LEAST_MESSAGE = 32 * KIB
"""Bytes of each message of a slice at least, however many hosts share it."""
_SLICES = 16
"""Slices of a message that is not long: the first and the last one leave links idle."""
SPLIT, WHOLE = 256 * KIB, 128 * KIB
"""Bytes of a leader's slice at least, where hosts exchange parts of it, and where it goes whole."""


class Ways(NamedTuple):
    """One rank's ways to all others of a communicator."""

    layout: Layout
    inside: Inside
    wire: Wire
    settings: Settings

    def slices(self, count: int, entry: int, least: int) -> list[Range]:
        """Ranges of entries that go one after the other, at least one; `least`: SPLIT or WHOLE."""
        leaders = self.layout.leaders
        messages = len(self.layout.hosts) if least == SPLIT else 1
        wanted = max(count * entry // leaders // _SLICES, least)
        nbytes = max(min(wanted, self.settings.segment_bytes), _LEAST_MESSAGE * messages)
        step = max(nbytes * leaders // entry, 1)
        return [(begin, min(begin + step, count)) for begin in range(0, max(count, 1), step)]

    def pipeline(
        self,
        slices: list[Range],
        begin: Callable[[int, Range], Flight | None],
        end: Callable[[Range], None],
    ) -> None:
        """Do something with each slice before and after its way between hosts.

        Args:
            begin: Returns the flight of slice number so and so; None where this rank only waits.
            end: All ranks of a host call it for the same slices in the same order.
        """
        flying: deque[tuple[Range, Flight | None]] = deque()
        for number, each in enumerate(slices):
            flying.append((each, begin(number, each)))
            if len(flying) > _IN_FLIGHT:
                self._land(*flying.popleft(), end)
        while flying:
            self._land(*flying.popleft(), end)

    def _land(self, entries: Range, flight: Flight | None, end: Callable[[Range], None]) -> None:
        if flight is not None:
            self.wire.finish(flight)
        end(entries)


def scratch(nbytes: int) -> Bytes:
    """Memory for one call."""
    return np.empty(max(nbytes, 1), np.uint8)


def distances(begin: int, hosts: int) -> Iterator[int]:
    """All other hosts, the next one first: no two hosts begin with the same one."""
    return ((begin + distance) % hosts for distance in range(1, hosts))
