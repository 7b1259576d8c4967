"""What an algorithm between hosts is made of. Plain values: nothing here sends or waits.

An algorithm is a function of one host's number among `size`, and gives the steps of that host. The
entries of an array are numbered from 0. Ranges are (begin, end) and may be empty: then no message
is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

Range = tuple[int, int]


class Message(NamedTuple):
    """A range of entries, to or from another host."""

    host: int
    entries: Range


class Step(NamedTuple):
    """Messages that one host sends and receives at the same time.

    Attributes:
        folds: Received entries are reduced with those in place, the lower host's first; else they
            replace these.
        answered: A receiver answers once a long message has come, and its sender's next step waits
            for that.
    """

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()
    folds: bool = False
    answered: bool = False


Steps = list[Step]
Algorithm = Callable[[int, int, int], Steps]
"""The steps of a host from its number, the number of hosts, and the number of entries."""


def split(entries: Range, parts: int) -> list[Range]:
    """Consecutive parts that differ in length by one entry at most."""
    begin, end = entries
    cuts = [begin + (end - begin) * part // parts for part in range(parts + 1)]
    return list(pairwise(cuts))


def exchange(to: Message, source: Message, folds: bool = False) -> Step:
    return Step((to,), (source,), folds)


def without_empty(steps: Iterable[Step]) -> Steps:
    """The steps without empty messages, and without steps that have no message."""
    found = [
        each._replace(sends=_filled(each.sends), receives=_filled(each.receives)) for each in steps
    ]
    return [each for each in found if each.sends or each.receives]


def _filled(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(each for each in messages if each.entries[0] < each.entries[1])
