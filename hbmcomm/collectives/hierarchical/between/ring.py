"""Rings: each host sends to the next and receives from the one before, at the same time.

A host sends (N-1)/N of the entries in a reduce-scatter or an allgather: the fewest possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from hbmcomm.collectives.hierarchical.between.steps import Message, Range, Steps, exchange, split


def reduce_scatter(host: int, pieces: Sequence[Range]) -> Steps:
    """Piece p is reduced on its way around; its result is on host p."""
    size = len(pieces)
    return [
        exchange(
            Message((host + 1) % size, pieces[(host - turn) % size]),
            Message((host - 1) % size, pieces[(host - turn - 1) % size]),
            folds=True,
        )
        for turn in range(1, size)
    ]


def allgather(host: int, pieces: Sequence[Range]) -> Steps:
    """Piece p goes from host p to all others."""
    size = len(pieces)
    return [
        exchange(
            Message((host + 1) % size, pieces[(host - turn) % size]),
            Message((host - 1) % size, pieces[(host - turn - 1) % size]),
        )
        for turn in range(size - 1)
    ]


def allreduce(host: int, size: int, count: int) -> Steps:
    """Both, one after the other."""
    pieces = split((0, count), size)
    return reduce_scatter(host, pieces) + allgather(host, pieces)
