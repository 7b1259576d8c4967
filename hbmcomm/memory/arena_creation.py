"""Creates an arena: by the first sharing method that works, shorter where addresses are scarce.

Collective: a failure on one rank makes all ranks try again, or raises the same error on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hbmcomm.errors import ArenaUnavailable
from hbmcomm.memory import idle_limit, segment, segment_cache
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.consensus import Allgather
from hbmcomm.memory.handshake import Begin, Handshake, Wish
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.segment_cache import LEAST_ARRAYS, SegmentCache, SharingMethod, by_segments

MOST_RANKS = 1024
"""Ranks on a node that transport direct serves."""
_SHORTER = 4
"""Segments that do not fit into the address space are tried again at this part of their length."""


def nothing() -> None:
    """The default `extra`: no value."""


def create_arena(
    allgather: Allgather,
    rank: int,
    size: int,
    kind: Callable[[], Kind],
    control: int,
    *,
    extra: Callable[[], Any] = nothing,
    begin: Begin | None = None,
    segments: SegmentCache = segment_cache.OF_PROCESS,
) -> tuple[Arena, list[Any]]:
    """The arena of all ranks that take part, and the `extra` of each; collective.

    Two exchanges where ranks can open each other's files in memory.

    Args:
        allgather: How the ranks exchange values, which must be picklable.
        rank, size: This rank's number among them, and how many they are.
        kind: Gives the memory of this rank's arrays; called once.
        control: Bytes of each rank's control block, the same on all ranks; they are zero.
        extra: Gives a value that this rank sends to the others; called once.
        begin: Called with the arena and the extras of all ranks, before the last exchange: if it
            fails on one rank, no rank gets the arena. It must not write into the memory of others,
            and may be called again, with another arena.
        segments: Of this process.

    Raises:
        ArenaUnavailable: On every rank: some rank cannot map another's memory; says which. Or there
            are more than MOST_RANKS.
        HbmcommError: On every rank: the first such error of any rank, in `kind`, `extra` or
            `begin`, or OutOfMemory of a rank without memory for its control block.
        ValueError: On every rank: the first one of any rank, in `kind` or `extra`.
    """
    methods = [by_segments(segments, backing) for backing in segment.BACKINGS]
    return create_by(methods, allgather, rank, size, kind, control, extra=extra, begin=begin)


def create_by(
    methods: Sequence[SharingMethod],
    allgather: Allgather,
    rank: int,
    size: int,
    kind: Callable[[], Kind],
    control: int,
    *,
    extra: Callable[[], Any],
    begin: Begin | None,
) -> tuple[Arena, list[Any]]:
    """`create_arena` by given methods, in this order."""
    if size > MOST_RANKS:  # on every rank, so that none waits
        raise ArenaUnavailable(
            f"transport direct serves up to {MOST_RANKS} ranks on a node, not {size}; "
            "take transport='mpi' or fewer ranks"
        )
    wish = cache(lambda: Wish(kind(), idle_limit.configured(), extra()))
    refused = []
    for method in methods:
        most, fresh = None, False
        while True:
            handshake = Handshake(allgather, rank, size, control)
            outcome = handshake.run(wish, method, most, fresh, begin)
            if outcome.arena is not None:
                return outcome.arena, outcome.extras
            if outcome.too_long and outcome.longest > LEAST_ARRAYS:
                most = outcome.longest // _SHORTER
            elif outcome.unlinked and not fresh:
                fresh = True
            else:
                break
        refused.append(f"{method.name}: {outcome.refused}")
    raise ArenaUnavailable(
        f"the ranks cannot share memory: {'; '.join(refused) or 'no method is available'}; take "
        "transport='mpi', or let containers share their PID or IPC namespace, or a folder that "
        "HBMCOMM_SHM names"
    )
