"""Routes by which ranks share memory: where each has its own, and how it finds that of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared.ground import Ground
from hbmcomm.memory.shared.own import Ordinary, Own
from hbmcomm.memory.shared.registry import Lengths, Registry
from hbmcomm.memory.shared.segment import Notice, Way


class Found(NamedTuple):
    """A rank's memory, mapped here."""

    address: int
    nbytes: int
    claim: int
    """Address of the claim that the rank holds while it lives; 0: none in this memory."""
    mapped: object
    """What keeps it mapped; it must not refer to a ground."""


class Source(Protocol):
    """One rank's own memory for one purpose, and how it finds the same of others."""

    ground: Ground
    notice: Any
    """What others need to find it."""
    hidden: bool
    """Whether only ranks that have it mapped already can find it."""

    def find(self, notice: Any) -> Found:
        """The memory of the rank that gave a notice; OSError where it cannot be had."""

    def hide(self) -> None:
        """No rank looks for this memory any more."""


Choice = Callable[[Kind, Lengths, int | None, bool], Source]
"""From the kind of the arrays, the lengths to reserve, the most bytes that segments of arrays may
have (None: any), and whether every rank must be able to find the memory, to a source."""


class Route(NamedTuple):
    """A way to share memory: where control blocks and staging are, and where arrays are."""

    name: str
    ordinary: Choice
    arrays: Choice


class Segments:
    """Segments, of ordinary memory or for the arrays of a kind."""

    def __init__(self, own: Registry, ground: Own) -> None:
        self.ground: Ground = ground
        self.notice: Any = ground.segment.notice
        self.hidden = ground.hidden
        self._own, self._hide = own, ground.hide
        self._claimed = isinstance(ground, Ordinary)

    def find(self, notice: Any) -> Found:
        """The segment of a notice, mapped here."""
        found = self._own.find(Notice(*notice))
        return Found(found.address, found.nbytes, found.address if self._claimed else 0, found)

    def hide(self) -> None:
        """Remove the segment's name."""
        self._hide()


def ordinary_segments(own: Registry, way: Way) -> Choice:
    """Ordinary memory in segments."""

    def choose(_kind: Kind, lengths: Lengths, most: int | None, fresh: bool) -> Source:
        limit = None if most is None else lengths.ordinary
        return Segments(own, own.ordinary(way, lengths.ordinary, limit, fresh))

    return choose


def by_segments(own: Registry, way: Way) -> Route:
    """Ordinary memory and arrays in segments."""

    def arrays(kind: Kind, lengths: Lengths, most: int | None, fresh: bool) -> Source:
        return Segments(own, own.arrays(kind, way, lengths.arrays, most, fresh))

    return Route(way, ordinary_segments(own, way), arrays)
