"""Where a rank runs: its CPUs, the package, node and cache they belong to, and its share of them.

Numbers are the kernel's, so that equal ones mean the same place in every container of a machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from hbmcomm.memory.policy import cgroup, kernel
from hbmcomm.memory.policy.cgroup import Quota
from hbmcomm.memory.topology.machine import current
from hbmcomm.memory.topology.model import Topology


class Setting(NamedTuple):
    """Where a rank runs."""

    cpus: frozenset[int]
    """On which it may run."""
    package: int
    node: int
    cache: int
    """The lowest CPU that shares its last-level cache."""
    quotas: tuple[Quota, ...]
    """The limits of CPU time that it is under, the nearest first."""


def here() -> Setting:
    """Where this process runs: the place of its CPUs, if they share one, else of the current CPU.

    The current CPU is where the scheduler has put a rank that is not bound; it may move later.
    """
    cpus = frozenset(os.sched_getaffinity(0))
    return describe(current(), Path("/sys"), cpus, kernel.current_cpu(), cgroup.quotas())


def describe(
    topology: Topology,
    sysfs: Path,
    cpus: frozenset[int],
    running: int | None,
    quotas: tuple[Quota, ...] = (),
) -> Setting:
    """`here` for any machine, CPUs of the process, and CPU that it runs on (None: not known)."""
    caches = {cpu: min(each.cpus) for each in topology.caches for cpu in each.cpus}
    nodes = {cpu: node.id for node in topology.nodes for cpu in node.cpus}
    packages = {cpu: package for cpu in cpus if (package := _package(sysfs, cpu)) is not None}
    at = running if running in cpus else min(cpus, default=0)
    node = _one(nodes, cpus, at)
    first = min((cpu for cpu, number in nodes.items() if number == node), default=0)
    return Setting(
        cpus,
        package=_one(packages, cpus, at),
        node=node,
        cache=_one(caches, cpus, at, otherwise=first),  # a virtual machine may show no caches
        quotas=quotas,
    )


def capacity(settings: Sequence[Setting]) -> float:
    """How many CPUs all these ranks can keep busy together.

    No more than the CPUs that any of them may use; of ranks under a quota no more than that, though
    many ranks share it (docker: --cpus).
    """
    return _capacity([(setting.cpus, setting.quotas[::-1]) for setting in settings])


def _capacity(ranks: Sequence[tuple[frozenset[int], tuple[Quota, ...]]]) -> float:
    """`capacity`, given the limits with the outermost first."""
    free = _union(cpus for cpus, quotas in ranks if not quotas)
    limited = sorted((quotas, sorted(cpus)) for cpus, quotas in ranks if quotas)
    total = float(len(free))
    for _, members in groupby(limited, key=lambda rank: rank[0][0].group):
        inside = list(members)
        quota = min(quotas[0].cpus for quotas, _ in inside)  # read at different moments
        total += min(quota, _capacity([(frozenset(cpus), rest[1:]) for rest, cpus in inside]))
    return min(total, float(len(_union(cpus for cpus, _ in ranks))))


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


def _one(places: Mapping[int, int], cpus: frozenset[int], at: int, otherwise: int = 0) -> int:
    """The place that all CPUs share, or the place of the CPU `at`."""
    found = {places[cpu] for cpu in cpus if cpu in places}
    return found.pop() if len(found) == 1 else places.get(at, otherwise)


@cache
def _package(sysfs: Path, cpu: int) -> int | None:
    """The socket of a CPU, as far as the kernel knows; read once, for there may be many CPUs."""
    try:
        text = (sysfs / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id").read_text()
        return max(int(text), 0)  # -1 where the firmware does not tell
    except (OSError, ValueError):
        return None
