"""Where a rank runs: its CPUs, their package, node and cache, and its limits of CPU time.

Numbers are the kernel's, so they mean the same in every container of a machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from hbmcomm.memory import capacity, kernel
from hbmcomm.memory.capacity import Quota
from hbmcomm.memory.machine import current
from hbmcomm.memory.topology import Topology


class CpuLocation(NamedTuple):
    """Where a rank runs."""

    cpus: frozenset[int]
    """The CPUs that it may run on."""
    package: int
    node: int
    cache: int
    """The lowest CPU that shares its last-level cache."""
    quotas: tuple[Quota, ...]
    """Its limits of CPU time, innermost first."""


def of_this_process() -> CpuLocation:
    """Where this process runs: the package, node and cache of all its CPUs, or of the current CPU.

    The latter is for a rank that is not bound; the scheduler may move it later.
    """
    cpus = frozenset(os.sched_getaffinity(0))
    return locate(current(), Path("/sys"), cpus, kernel.current_cpu(), capacity.quotas())


def locate(
    topology: Topology,
    sysfs: Path,
    cpus: frozenset[int],
    running: int | None,
    quotas: tuple[Quota, ...] = (),
) -> CpuLocation:
    """The location on any machine, given the process's CPUs and its current CPU (None: unknown)."""
    caches = {cpu: min(cpu_cache.cpus) for cpu_cache in topology.caches for cpu in cpu_cache.cpus}
    nodes = {cpu: node.id for node in topology.nodes for cpu in node.cpus}
    packages = {cpu: package for cpu in cpus if (package := _package(sysfs, cpu)) is not None}
    at = running if running in cpus else min(cpus, default=0)
    node = _one(nodes, cpus, at)
    first = min((cpu for cpu, number in nodes.items() if number == node), default=0)
    return CpuLocation(
        cpus,
        package=_one(packages, cpus, at),
        node=node,
        cache=_one(caches, cpus, at, otherwise=first),  # a virtual machine may show no caches
        quotas=quotas,
    )


def usable_cpus(locations: Sequence[CpuLocation]) -> float:
    """How many CPUs all these ranks can keep busy together.

    At most the CPUs that any of them may use; ranks that share a quota (docker: --cpus) count at
    most that.
    """
    return _usable_cpus([(location.cpus, location.quotas[::-1]) for location in locations])


def _usable_cpus(ranks: Sequence[tuple[frozenset[int], tuple[Quota, ...]]]) -> float:
    """`usable_cpus`, given the limits with the outermost first."""
    free = _union(cpus for cpus, quotas in ranks if not quotas)
    limited = sorted((quotas, sorted(cpus)) for cpus, quotas in ranks if quotas)
    total = float(len(free))
    for _, members in groupby(limited, key=lambda rank: rank[0][0].group):
        inside = list(members)
        quota = min(quotas[0].cpus for quotas, _ in inside)  # read at different moments
        total += min(quota, _usable_cpus([(frozenset(cpus), rest[1:]) for rest, cpus in inside]))
    return min(total, float(len(_union(cpus for cpus, _ in ranks))))


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


def _one(number_of: Mapping[int, int], cpus: frozenset[int], at: int, otherwise: int = 0) -> int:
    """The number that all CPUs have, or that of the CPU `at`."""
    numbers = {number_of[cpu] for cpu in cpus if cpu in number_of}
    return numbers.pop() if len(numbers) == 1 else number_of.get(at, otherwise)


@cache
def _package(sysfs: Path, cpu: int) -> int | None:
    """The socket of a CPU, None where unknown; read once, because there may be many CPUs."""
    try:
        text = (sysfs / f"devices/system/cpu/cpu{cpu}/topology/physical_package_id").read_text()
        return max(int(text), 0)  # -1 where the firmware does not give it
    except (OSError, ValueError):
        return None
