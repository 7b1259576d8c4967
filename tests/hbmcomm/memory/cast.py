"""Threads that play the ranks of an arena."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from hbmcomm import HbmcommError
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.dax_mapping import DeviceMappings
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.segment_cache import SegmentCache

CONTROL = 100_000
"""Bytes of a control block."""


class Rank(NamedTuple):
    """A thread that plays a rank; the other threads attach its memory as another process's."""

    number: int
    size: int
    allgather: Callable[[Any], Sequence[Any]]
    segments: SegmentCache
    mappings: DeviceMappings

    def arena(self, **more: Any) -> Arena:
        """This rank's part in an arena of regular memory."""
        regular = functools.partial(resolve, "regular")
        more.setdefault("segments", self.segments)
        return create_arena(self.allgather, self.number, self.size, regular, CONTROL, **more)[0]

    def misled(self, lie: Callable[[Any, Any], Any]) -> Rank:
        """This rank, which receives lie(offer, notices) in place of rank 1's offer."""

        def allgather(value: Any) -> Sequence[Any]:
            shown = list(self.allgather(value))
            if getattr(shown[1], "offer", None) is not None:
                shown[1] = shown[1]._replace(offer=lie(shown[1].offer, shown))
            return shown

        return self._replace(allgather=allgather)


class Cast:
    """Threads as ranks; called again, they still have what they had."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.exchanges = 0
        self.segments = [SegmentCache() for _ in range(size)]
        self.mappings = [DeviceMappings() for _ in range(size)]

    def __call__(self, part: Callable[[Rank], Any]) -> list[Any]:
        """What each rank's part returns, or the error that it raises; no rank is left waiting."""
        values: list[Any] = [None] * self.size
        meeting = threading.Barrier(self.size, timeout=20)

        def play(number: int) -> Any:
            def allgather(value: Any) -> Sequence[Any]:
                values[number] = value
                if meeting.wait() == 0:
                    self.exchanges += 1
                shown = list(values)
                meeting.wait()
                return shown

            try:
                return part(
                    Rank(number, self.size, allgather, self.segments[number], self.mappings[number])
                )
            except (HbmcommError, ValueError) as error:
                return error

        with ThreadPoolExecutor(self.size) as executor:
            return list(executor.map(play, range(self.size)))

    def arenas(self) -> list[Any]:
        """An arena of all ranks, as each of them has it, or the error that it raises."""
        return self(Rank.arena)
