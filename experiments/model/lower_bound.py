"""The least traffic a collective must move, and so the least time it can take. Pure arithmetic.

On one node the traffic is that of its memory; over several hosts, that of their links.
"""

import math
from collections.abc import Sequence

COPY = "copy"
"""Pseudo-operation: every rank copies its own buffer at once; its time gives the bandwidth."""

BARRIER = "barrier"
"""The one operation without data."""


def traffic(operation: str, ranks: int) -> float:
    """Bytes that must cross the memory bus, read and written, per byte of message; NaN if unknown.

    Counted for one node, where each rank holds a message of one byte: every input byte that is
    needed is read once, every output byte is written once.
    """
    n = ranks
    return {
        COPY: 2.0 * n,
        "bcast": float(n) if n > 1 else 0.0,
        "gather": 2.0 * n,
        "scatter": 2.0 * n,
        "reduce": n + 1.0,
        "allreduce": 2.0 * n,
        "allgather": n + 1.0 * n * n,
        "reduce_scatter": n * n + 1.0 * n,
        "alltoall": 2.0 * n * n,
        BARRIER: 0.0,
    }.get(operation, math.nan)


def bus_bytes(operation: str, ranks: int) -> float:
    """Bytes that count towards the bus bandwidth, per byte of message; NaN for what is no transfer.

    As nccl-tests define it (PERFORMANCE.md): the size of the largest buffer of a rank times a
    factor, 2 (n - 1) / n for allreduce, (n - 1) / n for allgather and reduce-scatter, 1 for all
    others. That buffer holds one message, or n where a rank holds something of all ranks. Figures
    of different operations and rank counts can then be held against one hardware limit.
    """
    n = ranks
    return {
        "bcast": 1.0,
        "reduce": 1.0,
        "gather": float(n),
        "scatter": float(n),
        "alltoall": float(n),
        "allreduce": 2.0 * (n - 1) / n,
        "allgather": n - 1.0,
        "reduce_scatter": n - 1.0,
    }.get(operation, math.nan)


def least_seconds(operation: str, ranks: int, copy_seconds: float) -> float:
    """Time that the traffic takes at the rate of all ranks copying the same size at once."""
    return copy_seconds * traffic(operation, ranks) / traffic(COPY, ranks)


def wire_bytes(operation: str, hosts: Sequence[int]) -> float:
    """Bytes that the busiest link must carry in one direction, per byte of message; NaN if unknown.

    Hosts combine what their ranks have before they send it. An allreduce over N hosts takes
    2 (N - 1) / N where they share the work evenly (Patarasuk and Yuan, doi:10.1016/
    j.jpdc.2008.09.002); all others are counted: what a host has and another needs leaves it once.

    Args:
        hosts: the ranks on each; the root of an operation is on the first.
    """
    most, least, ranks = max(hosts), min(hosts), sum(hosts)
    if len(hosts) == 1:
        return 0.0
    blocks = float(max(ranks - least, most))
    return {
        "bcast": 1.0,
        "reduce": 1.0,
        "allreduce": 2.0 * (len(hosts) - 1) / len(hosts),
        "gather": float(ranks - hosts[0]),
        "scatter": float(ranks - hosts[0]),
        "allgather": blocks,
        "reduce_scatter": blocks,
        "alltoall": float(max(here * (ranks - here) for here in hosts)),
        BARRIER: 0.0,
    }.get(operation, math.nan)


def least_wire_seconds(
    operation: str, hosts: Sequence[int], nbytes: int, bits_per_second: float
) -> float:
    """Time that the data takes on the busiest link, without headers; NaN if unknown.

    Args:
        nbytes: of the message.
        bits_per_second: of each link in each direction.
    """
    return wire_bytes(operation, hosts) * nbytes * 8 / bits_per_second
