"""Rings: each host sends to the next and receives from the one before, at the same time.

A host sends (N-1)/N of the entries in a reduce-scatter or an allgather: the fewest possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from hbmcomm.collectives.hierarchical.between.steps import Message, Range, Step, Steps, split


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


def allreduce(host: int, size: int, count: int) -> Steps:
    """Both, one after the other."""
    pieces = split((0, count), size)
    return reduce_scatter(host, pieces) + allgather(host, pieces)
