"""Chains: each host receives from the one before and sends to the next. For many slices in turn.

Every link carries each entry once in each direction; hosts at the two ends use one direction.
"""

from __future__ import annotations

from hbmcomm.collectives.hierarchical.between.steps import Message, Step, Steps


def bcast(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From the root along the hosts that follow it."""
    return _along((host - root) % size, host, size, count, folds=False)


def reduce(host: int, size: int, count: int, root: int = 0) -> Steps:
    """From the host after the root along all others to the root."""
    return _along((host - root - 1) % size, host, size, count, folds=True)


def _along(place: int, host: int, size: int, count: int, folds: bool) -> Steps:
    before = (Message((host - 1) % size, (0, count)),) if place else ()
    after = (Message((host + 1) % size, (0, count)),) if place < size - 1 else ()
    return [Step(receives=before, folds=folds), Step(sends=after)]
