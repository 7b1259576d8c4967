"""Recursive doubling: in each step pairs exchange all that they have. log2(N) steps.

Where N is no power of two, the last hosts give their entries to the first ones before, and get the
result after.
"""

from __future__ import annotations

from collections.abc import Callable

from hbmcomm.collectives.hierarchical.between.steps import Message, Step, Steps, exchange


def allreduce(host: int, size: int, count: int) -> Steps:
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
