"""What transport direct does in a collective, counted: flags, and bytes in memory that ranks share.

Flags travel along groups of at most `fan_in` ranks; each rank then reads what others offer and
writes its part of all results (docs/transport.md has the paths). Nothing is sent.
"""

from __future__ import annotations

import math

from hbmcomm.costmodel.counts import Counting, Counts

FAN_IN = 8
"""How many ranks or groups meet in one group at most: the library's default."""
SERVICE = 0.37
"""Readers of one line are served so many latencies apart (docs/costs.md names the source)."""


def flags(ranks: int) -> float:
    """Latencies until every rank has learnt of every other, along the groups."""
    levels, waiting = 0.0, ranks
    while waiting > 1:
        members = min(FAN_IN, waiting)
        levels += 1 + SERVICE * (members - 2)
        waiting = math.ceil(waiting / FAN_IN)
    return levels


def _moved(p: int, n: float) -> Counts:
    return Counts(flags(p), 2 * n)


def _reduce(p: int, n: float) -> Counts:
    return Counts(flags(p), n + n / p, n * (p - 1) / p)


def _allreduce(p: int, n: float) -> Counts:
    return Counts(flags(p), 2 * n, n * (p - 1) / p)


def _allgather(p: int, n: float) -> Counts:
    return Counts(flags(p), 2 * p * n)


def _reduce_scatter(p: int, n: float) -> Counts:
    return Counts(flags(p), (p + 1) * n, (p - 1) * n)


SHARED: dict[str, Counting] = {
    "bcast": _moved,
    "reduce": _reduce,
    "allreduce": _allreduce,
    "gather": _moved,
    "allgather": _allgather,
    "reduce_scatter": _reduce_scatter,
}
"""By operation."""
