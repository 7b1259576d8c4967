"""Rabenseifner's algorithm: recursive halving, then recursive doubling of the results.

As few bytes as a ring, 2(N-1)/N of the entries, in 2 log2(N) steps, where N is a power of two.
Source: Thakur, Rabenseifner, Gropp, doi:10.1177/1094342005051521.
"""

from __future__ import annotations

from hbmcomm.collectives.hierarchical.between.doubling import with_rest
from hbmcomm.collectives.hierarchical.between.steps import Message, Steps, exchange, split


def allreduce(host: int, size: int, count: int) -> Steps:
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
