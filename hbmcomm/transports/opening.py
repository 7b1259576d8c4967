"""Opens the core on memory that ranks share: an arena, and this rank's state in it.

Collective: all ranks get both, or all get an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.consensus import Allgather, run_on_all
from hbmcomm.transports.native import Core, Setting, lib, setting

Opened = tuple[Core, Arena]


def open_core(
    create: Callable[..., tuple[Arena, list[Any]]],
    allgather: Allgather,
    rank: int,
    names: Sequence[int],
    thresholds: Mapping[str, int] | None = None,
) -> Opened:
    """What ranks that share memory open together.

    Args:
        create: `arena_creation.create_arena` with its `kind`, or `dax_arena.create_arena` with its
            `path`; for their errors see there.
        rank: This rank's number among them.
        names: The numbers by which errors name the ranks.
        thresholds: Take the place of the defaults of `tuning.TABLE`.
    """
    states: list[Core] = []

    def begin(arena: Arena, settings: list[Setting]) -> None:
        changed = [peer._replace(tuning={**(thresholds or {}), **peer.tuning}) for peer in settings]
        states[:] = [Core(arena, rank, changed, names)]

    control = int(lib.hbm_control_bytes(len(names)))
    arena, _ = create(allgather, rank, len(names), control=control, extra=setting, begin=begin)
    return states[0], arena


def open_on_all(allgather: Allgather, open_here: Callable[[], Opened]) -> Opened:
    """What `open_here` has opened on this rank's host, once it has on every host.

    Raises:
        HbmcommError, ValueError: On every rank: that of the lowest rank that failed.
    """
    made: list[Opened] = []
    try:
        run_on_all(allgather, lambda: made.append(open_here()))
    except HbmcommError:
        for core, _ in made:
            core.close()
        raise
    return made[0]
