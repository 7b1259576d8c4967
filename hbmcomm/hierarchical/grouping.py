"""Finds out which ranks can share memory, by trying: each rank maps a little memory of each other.

Neither host names nor the MPI decide: ranks of one host may be in containers that share nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hbmcomm.memory import consensus, procfs, segment
from hbmcomm.memory.consensus import Allgather
from hbmcomm.memory.segment import HUGE_PAGE, Locator, Segment


class _Trial(NamedTuple):
    """What a rank offers for others to map."""

    boot: int
    """Only processes of one boot of one kernel can share memory."""
    locators: tuple[Locator, ...]


def find_hosts(allgather: Allgather, rank: int) -> list[tuple[int, ...]]:
    """The ranks of each host; collective, and the same on all ranks.

    Raises:
        HbmcommError: On every rank: a rank's HBMCOMM_SHM cannot be used.
    """
    segments: list[Segment] = []

    def trial() -> _Trial:
        segments.extend(_segments())
        return _Trial(procfs.boot(Path("/proc")), tuple(segment.locator for segment in segments))

    try:
        trials = consensus.run_on_all(allgather, trial)
        mapped = {
            other
            for other, theirs in enumerate(trials)
            if other == rank or (theirs.boot == trials[rank].boot and _can_map(theirs))
        }
        reach: list[set[int]] = list(allgather(mapped))
    finally:
        for own_segment in segments:
            own_segment.unlink()
    return groups(reach)


def _segments() -> list[Segment]:
    """A short segment of each backing that works here; it holds no memory."""
    segments = []
    for backing in segment.BACKINGS:
        try:
            segments.append(segment.create(backing, HUGE_PAGE))
        except OSError:
            continue
    return segments


def _can_map(trial: _Trial) -> bool:
    for locator in trial.locators:
        try:
            segment.attach(Locator(*locator))
        except OSError:
            continue
        return True
    return False


Ranks = tuple[int, ...]


def groups(reach: Sequence[Collection[int]]) -> list[Ranks]:
    """The ranks of each host, by their lowest ranks.

    Args:
        reach: For each rank, those of which it could map memory. Two ranks are on one host if they
            can map each other's, and that of all others on it.
    """
    hosts: list[list[int]] = []
    for rank, mapped in enumerate(reach):
        for group in hosts:
            if all(other in mapped and rank in reach[other] for other in group):
                group.append(rank)
                break
        else:
            hosts.append([rank])
    return [tuple(group) for group in hosts]


def in_order_of_leading(ranks: Sequence[int], nodes: Mapping[int, int]) -> Ranks:
    """The ranks of a host: the first of each NUMA node, then the second of each, and so on."""
    seen: Counter[int] = Counter()
    turns = []
    for rank in ranks:
        turns.append((seen[nodes[rank]], rank))
        seen[nodes[rank]] += 1
    return tuple(rank for _, rank in sorted(turns))


class Layout:
    """The hosts as one rank sees them.

    Attributes:
        hosts: The ranks of each host, in ascending order.
        rank, host, index: This rank, its host, and its number on that host.
        host_of: The host of each rank.
        leaders: How many ranks of each host talk to other hosts.
    """

    def __init__(
        self, hosts: Sequence[Ranks], rank: int, leaders: int, nodes: Mapping[int, int]
    ) -> None:
        """`leaders`: at most; hosts with fewer ranks limit it. `nodes`: the node of each rank."""
        self.hosts, self.rank = tuple(hosts), rank
        self.host_of = {member: host for host, ranks in enumerate(hosts) for member in ranks}
        self.host = self.host_of[rank]
        self.index = self.inside.index(rank)
        self.leaders = max(1, min(leaders, *map(len, self.hosts)))
        self._leading = [in_order_of_leading(ranks, nodes) for ranks in hosts]

    @property
    def inside(self) -> Ranks:
        """The ranks of this host."""
        return self.hosts[self.host]

    def is_here(self, rank: int) -> bool:
        return self.host_of[rank] == self.host

    @property
    def leading(self) -> Ranks:
        """All ranks: those of each host in the order in which they lead."""
        return tuple(rank for ranks in self._leading for rank in ranks)
