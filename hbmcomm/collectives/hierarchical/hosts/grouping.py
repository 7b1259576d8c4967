"""Finds out which ranks can share memory, by trying: each rank maps a little memory of each other.

Neither host names nor the MPI decide: ranks of one host may be in containers that share nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hbmcomm.collectives.hierarchical.hosts.layout import groups
from hbmcomm.memory.shared import segment
from hbmcomm.memory.shared.consensus import Allgather
from hbmcomm.memory.shared.segment import HUGE_PAGE, Locator, Segment
from hbmcomm.memory.topology import procfs


class _Trial(NamedTuple):
    """What a rank offers for others to map."""

    boot: int
    """Only processes of one boot of one kernel can share memory."""
    locators: tuple[Locator, ...]


def find_hosts(allgather: Allgather, rank: int) -> list[tuple[int, ...]]:
    """The ranks of each host; collective, and the same on all ranks."""
    segments = _segments()
    try:
        own = _Trial(procfs.boot(Path("/proc")), tuple(each.locator for each in segments))
        trials: list[_Trial] = list(allgather(own))
        mapped = {
            other
            for other, trial in enumerate(trials)
            if other == rank or (trial.boot == own.boot and _can_map(trial))
        }
        reach: list[set[int]] = list(allgather(mapped))
    finally:
        for each in segments:
            each.unlink()
    return groups(reach)


def _segments() -> list[Segment]:
    """A short segment of each backing that works here; it holds no memory."""
    found = []
    for backing in segment.BACKINGS:
        try:
            found.append(segment.create(backing, HUGE_PAGE))
        except OSError:
            continue
    return found


def _can_map(trial: _Trial) -> bool:
    for locator in trial.locators:
        try:
            segment.attach(Locator(*locator))
        except OSError:
            continue
        return True
    return False
