"""Making an arena: over the first route that works, and shorter where addresses are scarce.

Collective: whatever fails on one rank ends in another try of all ranks, or in the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from hbmcomm.errors import ArenaUnavailable, HbmcommError
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared import keep, registry, segment
from hbmcomm.memory.shared.agree import Allgather
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.attempt import Attempt, Begin, Plan
from hbmcomm.memory.shared.registry import LEAST_ARRAYS, Registry
from hbmcomm.memory.shared.route import Route, by_segments

MOST_RANKS = 1024
"""That transport direct serves on a node."""
_SHORTER = 4
"""Segments for which there are not addresses enough are tried at this part of their length."""


def nothing() -> None:
    """The default `extra`: no value."""


def make(
    allgather: Allgather,
    rank: int,
    size: int,
    kind: Callable[[], Kind],
    control: int,
    *,
    extra: Callable[[], Any] = nothing,
    begin: Begin | None = None,
    own: Registry = registry.HERE,
) -> tuple[Arena, list[Any]]:
    """The arena of all ranks that take part, and the `extra` of each; collective.

    Two exchanges where ranks can open each other's files in memory.

    Args:
        allgather: How the ranks exchange values, which pickle can write.
        rank, size: This rank's number among them, and how many they are.
        kind: Gives the memory of this rank's arrays; called once.
        control: Bytes of each rank's control block, the same on all ranks; they are zero.
        extra: Gives a value that this rank sends to the others; called once.
        begin: Called with the arena and the extras of all ranks, before the last exchange: if it
            fails on one rank, no rank gets the arena. It must not write into the memory of others,
            and may be called again, with another arena.
        own: The segments of this process.

    Raises:
        ArenaUnavailable: On every rank: some rank cannot map another's memory; says which.
        HbmcommError: On every rank: the first such error of any rank, in `kind`, `extra` or
            `begin`, or OutOfMemory of a rank without memory for its control block.
        ValueError: On every rank: the first one of any rank, in `kind` or `extra`.
    """
    routes = [by_segments(own, way) for way in segment.WAYS]
    return make_by(routes, allgather, rank, size, kind, control, extra=extra, begin=begin)


def make_by(
    routes: Sequence[Route],
    allgather: Allgather,
    rank: int,
    size: int,
    kind: Callable[[], Kind],
    control: int,
    *,
    extra: Callable[[], Any],
    begin: Begin | None,
) -> tuple[Arena, list[Any]]:
    """`make` over given routes, in this order."""
    if size > MOST_RANKS:  # on every rank alike, so that none waits
        raise HbmcommError(
            f"transport direct serves up to {MOST_RANKS} ranks on a node, not {size}"
        )
    plan = cache(lambda: Plan(kind(), keep.asked(), extra()))
    refused = []
    for route in routes:
        most, fresh = None, False
        while True:
            attempt = Attempt(allgather, rank, size, control)
            found = attempt.run(plan, route, most, fresh, begin)
            if found.arena is not None:
                return found.arena, found.extras
            if found.too_long and found.longest > LEAST_ARRAYS:
                most = found.longest // _SHORTER
            elif found.hidden and not fresh:
                fresh = True
            else:
                break
        refused.append(f"{route.name}: {found.refused}")
    raise ArenaUnavailable(
        f"the ranks cannot share memory: {'; '.join(refused) or 'no way is open'}; take "
        "transport='mpi', or let containers share their PID or IPC namespace"
    )
