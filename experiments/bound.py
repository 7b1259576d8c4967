"""The least traffic a collective must move, and so the least time it can take. Pure arithmetic."""

COPY = "copy"
"""Pseudo-operation: every rank copies its own buffer at once; its time gives the bandwidth."""

BARRIER = "barrier"
"""The one operation without data."""


def traffic(operation: str, ranks: int) -> float:
    """Bytes that must cross the memory bus, read and written, per byte of message and in all.

    Counted for one node whose ranks each hold a message of one byte: every input byte that is
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
    }[operation]


def least_seconds(operation: str, ranks: int, copy_seconds: float) -> float:
    """Time that the traffic takes at the rate of all ranks copying the same size at once."""
    return copy_seconds * traffic(operation, ranks) / traffic(COPY, ranks)
