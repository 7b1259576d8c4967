"""The last calls of a rank in their order: ranks that made different ones wait for ever."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

_KEPT = 1024
"""Calls: a root can be that far ahead of ranks that wait in another one."""
_RECENT = 16  # of them
_ALIKE = ("Bcast", "Reduce", "Allreduce", "Scan", "Exscan")
"""Calls in which the block of every rank has the same length."""


class Call(NamedTuple):
    """What all ranks have in common in a call."""

    name: str
    nbytes: int = 0
    """0 where it may differ."""
    root: int = 0

    @classmethod
    def of(cls, name: str, nbytes: int, root: int) -> Call:
        """A call in which this rank's own block has so many bytes."""
        return cls(name, nbytes if name in _ALIKE else 0, root)

    def __str__(self) -> str:
        return f"{self.name}({self.nbytes:,} bytes, root={self.root})"


class Calls:
    """The calls of one rank. One thread adds, others may read.

    Attributes:
        count: of all calls so far.
        finished: of those in which this rank has done its part.
    """

    def __init__(self) -> None:
        self.count = self.finished = 0
        self._last: deque[tuple[int, Call]] = deque(maxlen=_KEPT)

    def add(self, call: Call) -> None:
        """Begin a call."""
        self.count += 1
        self._last.append((self.count, call))

    def finish(self) -> None:
        """End the call that began last."""
        self.finished = self.count

    def recent(self) -> list[tuple[int, str]]:
        """The last ones with their numbers, for another rank."""
        return [(number, str(call)) for number, call in list(self._last)[-_RECENT:]]

    def difference(self, others: Sequence[tuple[int, str]]) -> tuple[str, str] | None:
        """This rank's first call that differs from another's, and that one, from its `recent`."""
        own = dict(list(self._last))
        for number, text in others:
            call = own.get(number)
            if call is not None and str(call) != text:
                return str(call), text
        return None
