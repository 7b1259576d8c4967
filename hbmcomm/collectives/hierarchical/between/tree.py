"""Binomial trees: N-1 messages of all entries, in log2(N) rounds."""

from __future__ import annotations

from hbmcomm.collectives.hierarchical.between.steps import Message, Step, Steps


def bcast(host: int, size: int, count: int, root: int = 0) -> Steps:
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


def reduce(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From all to the root: the rounds of `bcast` backwards."""
    back = reversed(bcast(host, size, count, root))
    return [Step(each.receives, each.sends, folds=bool(each.sends)) for each in back]


def allreduce(host: int, size: int, count: int) -> Steps:
    """To host 0 and back."""
    return reduce(host, size, count) + bcast(host, size, count)
