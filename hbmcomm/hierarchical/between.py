"""Algorithms between hosts, as plain values: nothing here sends or waits.

An algorithm is a function of one host's number among `size`, and gives the steps of that host. The
entries of an array are numbered from 0. Ranges are (begin, end) and may be empty: then no message
is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from hbmcomm.quantities import KIB

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


def barrier(host: int, size: int) -> Steps:
    """Messages of entry 0, which goes; entry 1 is where it comes to."""
    rounds = (size - 1).bit_length()
    return [
        exchange(
            Message((host + (1 << each)) % size, (0, 1)),
            Message((host - (1 << each)) % size, (1, 2)),
        )
        for each in range(rounds)
    ]


def chain_bcast(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From the root along the hosts that follow it."""
    return _along((host - root) % size, host, size, count, folds=False)


def chain_reduce(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From the host after the root along all others to the root."""
    return _along((host - root - 1) % size, host, size, count, folds=True)


def _along(place: int, host: int, size: int, count: int, folds: bool) -> Steps:
    before = (Message((host - 1) % size, (0, count)),) if place else ()
    after = (Message((host + 1) % size, (0, count)),) if place < size - 1 else ()
    return [Step(receives=before, folds=folds), Step(sends=after)]


def tree_bcast(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From the root to all: in each round, hosts that have the entries send them to one more.

    A host that serves several waits for the answer of each before it serves the next. Its messages
    would share the link otherwise: the first host would have the entries, and could pass them on,
    as late as the last.
    """
    place, everything = (host - root) % size, (0, count)
    found, distance = Steps(), 1
    while distance < size:
        if place < distance and place + distance < size:
            child = Message((host + distance) % size, everything)
            found.append(Step(sends=(child,), answered=place + 2 * distance < size))
        elif distance <= place < 2 * distance:
            parent = Message((host - distance) % size, everything)
            found.append(Step(receives=(parent,), answered=place + distance < size))
        distance *= 2
    return found


def tree_reduce(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From all to the root: the rounds of `bcast` backwards."""
    back = reversed(tree_bcast(host, size, count, root))
    return [Step(each.receives, each.sends, folds=bool(each.sends)) for each in back]


def tree_allreduce(host: int, size: int, count: int) -> Steps:
    """To host 0 and back."""
    return tree_reduce(host, size, count) + tree_bcast(host, size, count)


def _turn(host: int, pieces: Sequence[Range], turn: int, folds: bool) -> Step:
    """Send the piece of the turn before, and receive the one before that."""
    size = len(pieces)
    to = Message((host + 1) % size, pieces[(host - turn) % size])
    source = Message((host - 1) % size, pieces[(host - turn - 1) % size])
    return Step((to,), (source,), folds)


def reduce_scatter(host: int, pieces: Sequence[Range]) -> Steps:
    """Piece p is reduced on its way around; its result is on host p."""
    return [_turn(host, pieces, turn, folds=True) for turn in range(1, len(pieces))]


def allgather(host: int, pieces: Sequence[Range]) -> Steps:
    """Piece p goes from host p to all others."""
    return [_turn(host, pieces, turn, folds=False) for turn in range(len(pieces) - 1)]


def ring_allreduce(host: int, size: int, count: int) -> Steps:
    """Both, one after the other."""
    pieces = split((0, count), size)
    return reduce_scatter(host, pieces) + allgather(host, pieces)


def doubling_allreduce(host: int, size: int, count: int) -> Steps:
    """All entries in every message: the fewest steps."""
    everything = (0, count)

    def among(paired: int) -> Steps:
        distances = [1 << step for step in range(paired.bit_length() - 1)]
        partners = [host ^ distance for distance in distances]
        return [
            exchange(Message(each, everything), Message(each, everything), folds=True)
            for each in partners
        ]

    return with_rest(host, size, count, among)


def with_rest(host: int, size: int, count: int, among: Callable[[int], Steps]) -> Steps:
    """The steps of `among` on the first hosts, a power of two of them, and those of the rest.

    Args:
        host, size, count: See `Algorithm`.
        among: Gives this host's steps among so many hosts, which all get the result.
    """
    paired = 1 << (size.bit_length() - 1)
    everything, rest = (0, count), size - paired
    if host >= paired:
        partner = Message(host - paired, everything)
        return [Step(sends=(partner,)), Step(receives=(partner,))]
    if host >= rest:
        return among(paired)
    partner = Message(host + paired, everything)
    before, after = Step(receives=(partner,), folds=True), Step(sends=(partner,))
    return [before, *among(paired), after]


def rabenseifner_allreduce(host: int, size: int, count: int) -> Steps:
    """In each step of the first half, pairs exchange half of what they still reduce."""

    def among(paired: int) -> Steps:
        own, halving, gathering = (0, count), Steps(), Steps()
        distance = paired // 2
        while distance:
            lower, upper = split(own, 2)
            own, given = (upper, lower) if host & distance else (lower, upper)
            partner = host ^ distance
            halving.append(exchange(Message(partner, given), Message(partner, own), folds=True))
            gathering.insert(0, exchange(Message(partner, own), Message(partner, given)))
            distance //= 2
        return halving + gathering

    return with_rest(host, size, count, among)


AUTO = "auto"

ALLREDUCE: dict[str, Algorithm] = {
    "ring": ring_allreduce,
    "recursive-doubling": doubling_allreduce,
    "rabenseifner": rabenseifner_allreduce,
    "tree": tree_allreduce,
}
"""The algorithms of Allreduce by name."""

NAMES = (AUTO, *ALLREDUCE)

SHORT = 16 * KIB
"""Bytes up to which another round takes longer than the bytes that it saves."""
_LONG = 256 * KIB
"""Bytes of each host's part of a message from which on the rounds of a ring are short beside it.
Each host then hears from one other alone, and has its next part while it sends the last."""


def of_allreduce(name: str, size: int, nbytes: int) -> Algorithm:
    """The algorithm for an Allreduce of so many bytes on `size` hosts."""
    if name != AUTO:
        return ALLREDUCE[name]
    if nbytes <= SHORT:
        return doubling_allreduce
    if size & (size - 1) or nbytes // size >= _LONG:
        return ring_allreduce
    return rabenseifner_allreduce


def of_bcast(name: str, size: int, root: int, slices: int) -> Algorithm:
    """The algorithm for a Bcast from host `root` to `size` hosts: a tree, or a chain of slices."""
    return partial(tree_bcast if _takes_tree(name, size, slices) else chain_bcast, root=root)


def of_reduce(name: str, size: int, root: int, slices: int) -> Algorithm:
    """The algorithm for a Reduce from `size` hosts to host `root`."""
    return partial(tree_reduce if _takes_tree(name, size, slices) else chain_reduce, root=root)


def _takes_tree(name: str, size: int, slices: int) -> bool:
    """A named algorithm without a form for one root leaves the choice to the times of a slice.

    In a tree the root's link carries each slice once a round; along a chain each slice follows the
    one before.
    """
    rounds = (size - 1).bit_length()
    return name == "tree" or (name != "ring" and size - 2 + slices > rounds * slices)
