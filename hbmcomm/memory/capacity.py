"""How much memory a strict kind still has: free memory of its nodes, and the cgroup's limit.

An allocation beyond the free memory of a strict bind does not fail: the kernel kills the process at
the first access. So this module checks first, keeps a margin, and populates blocks step by step.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hbmcomm.errors import OutOfMemory
from hbmcomm.memory import kernel, procfs, sysfs
from hbmcomm.memory.kinds import Kind
from hbmcomm.quantities import MIB

STEP = 64 * MIB
"""At most so many bytes are populated between two checks of the free memory."""
SMALLEST_STEP = 2 * MIB
LASTING = 0.01
"""Seconds for which a check serves small blocks too."""
SHARERS = 16
"""Ranks that may allocate the last memory of a node at the same time: between two checks each
populates at most one part in so many of what is free."""


def require(kind: Kind, nbytes: int, had: int = 0) -> int:
    """The bytes that the kind's nodes and the cgroup have free now, at least `nbytes`.

    Args:
        nbytes: Bytes that are still needed.
        had: Bytes of the same block that are populated already, for the message.

    Raises:
        OutOfMemory: They have less.
    """
    asked = f"{kind.name}: asked for {_mib(had + nbytes)}"
    where = f"on node {sysfs.format_list(kind.nodes)}"
    taken = f" (had {_mib(had)} of it, then others took the rest)" if had else ""
    free = free_bytes(kind.nodes)
    if nbytes > free:
        raise OutOfMemory(
            f"{asked} {where}{taken}, {_mib(free)} are free there; ask for less, free arrays, "
            "or take a kind that may spill, such as regular or hbw_preferred"
        )
    room = headroom()
    if nbytes > room:
        raise OutOfMemory(
            f"{asked}{taken}, the memory limit of this cgroup leaves "
            f"{_mib(room)}; ask for less or raise it (docker: --memory)"
        )
    return min(free, room)


def steps(kind: Kind, nbytes: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the pieces of a block, each when enough is free for all that remain.

    The less is free, the smaller they are, since other ranks may allocate the same memory.

    Raises:
        OutOfMemory: There is less free.
    """
    if _is_short_of_last_check(kind, nbytes):
        yield 0, nbytes
        return
    start = 0
    while start < nbytes:
        free = require(kind, nbytes - start, start)
        _checks[kind.nodes] = time.monotonic() + LASTING, free // SHARERS - nbytes
        share = free // SHARERS // SMALLEST_STEP * SMALLEST_STEP
        length = min(nbytes - start, max(SMALLEST_STEP, min(STEP, share)))
        yield start, length
        start += length


_checks: dict[tuple[int, ...], tuple[float, int]] = {}
"""By nodes: until when the last check of free memory holds, and for how many more bytes."""


def _is_short_of_last_check(kind: Kind, nbytes: int) -> bool:
    """Whether a small block needs no check of its own: a check reads files."""
    until, left = _checks.get(kind.nodes, (0.0, 0))
    holds = nbytes <= min(left, SMALLEST_STEP) and time.monotonic() < until
    if holds:
        _checks[kind.nodes] = until, left - nbytes
    return holds


def populate(kind: Kind, address: int, nbytes: int) -> None:
    """Put memory under every page of a block; OutOfMemory where there is too little."""
    for start, length in steps(kind, nbytes):
        try:
            kernel.populate(address + start, length)
        except OSError as error:
            raise OutOfMemory(
                f"{kind.name}: {_mib(start)} of {_mib(nbytes)} on node "
                f"{sysfs.format_list(kind.nodes)} could be had ({error}); ask for less"
            ) from None


def free_bytes(nodes: tuple[int, ...]) -> int:
    """Free bytes of the nodes together, less a margin for the kernel's reserves."""
    return sum(_free_on(node) for node in nodes)


def _free_on(node: int) -> int:
    try:
        memory = sysfs.node_memory(Path("/sys"), node)
    except OSError:  # a kernel without NUMA support has the machine as one node
        memory = sysfs.parse_meminfo(Path("/proc/meminfo").read_text())
    margin = kernel_reserves().get(node, 0) + min(64 * MIB, memory.total // 32)
    return max(0, memory.available - margin)


@cache
def kernel_reserves() -> dict[int, int]:
    """Read once: it is slow with many CPUs, and only an administrator changes it."""
    return procfs.watermarks(Path("/proc"))


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f} MiB"


_UNLIMITED = sys.maxsize
_NO_LIMIT_FROM = 2**62  # version 1 spells "no limit" as the largest whole number of pages
_LARGEST_MARGIN = 64 * 2**20
_CPU_FILES = {"cgroup": "cpu.cfs_quota_us", "cgroup2": "cpu.max"}
"""The file that begins with a group's limit of CPU time, by version."""
_FILES = {
    # version: limit, usage, and the field of memory.stat that the kernel reclaims on demand
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
}


class Quota(NamedTuple):
    """A limit of CPU time that a group of processes shares."""

    group: tuple[int, int]
    """Device and inode of its folder: the same in every container that sees the group."""
    cpus: float
    """Seconds of CPU time a second."""


def headroom(procfs: Path = Path("/proc")) -> int:
    """Bytes until the nearest memory limit; a very large number where there is none.

    A margin of each limit is left for page tables and other needs of the processes: beyond the
    limit the kernel kills them.
    """
    return min(
        (_room(folder, version) for version, folder in _folders(procfs, "memory")),
        default=_UNLIMITED,
    )


def quotas(procfs: Path = Path("/proc")) -> tuple[Quota, ...]:
    """This process's limits of CPU time, from its own group up."""
    limits = (_quota(folder, version) for version, folder in _folders(procfs, "cpu"))
    return tuple(quota for quota in limits if quota is not None)


@cache
def _folders(procfs: Path, controller: str) -> list[tuple[str, Path]]:
    """Version and folder of each group that limits this process; read once."""
    try:
        groups = os.fsdecode((procfs / "self/cgroup").read_bytes())
        mounts = os.fsdecode((procfs / "self/mountinfo").read_bytes())
    except OSError:
        return []
    folders = []
    for version, root, mount in _mounts(mounts, controller):
        names = rf"\d+:(?:[^:]*,)?{controller}(?:,[^:]*)?" if version == "cgroup" else "0:"
        own = re.search(rf"^{names}:(.*)$", groups, re.MULTILINE)
        if own is None:
            continue
        # In a container the group's path is the host's, and the mount shows the group as its root.
        inside = own[1].removeprefix(root.rstrip("/")) if own[1].startswith(root) else "/"
        folder = mount / inside.lstrip("/")
        while folder.is_relative_to(mount):
            folders.append((version, folder))
            folder = folder.parent
    return folders


def _mounts(mounts: str, controller: str) -> list[tuple[str, str, Path]]:
    """Version, root and mount point of each cgroup mount that may have a controller."""
    cgroup_mounts = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        version, _, options = after.partition(" ")
        named = re.split(r"[ ,]", options)
        if version == "cgroup2" or (version == "cgroup" and controller in named):
            root, mount = before.split()[3:5]
            cgroup_mounts.append((version, root, Path(mount)))
    return cgroup_mounts


def _quota(folder: Path, version: str) -> Quota | None:
    try:
        limit, *rest = (folder / _CPU_FILES[version]).read_text().split()
        if limit in ("max", "-1"):
            return None
        period = rest[0] if rest else (folder / "cpu.cfs_period_us").read_text()
        state = folder.stat()
        return Quota((state.st_dev, state.st_ino), int(limit) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _room(folder: Path, version: str) -> int:
    limit, usage, reclaimable = _FILES[version]
    try:
        text = (folder / limit).read_text().strip()
        allowed = _UNLIMITED if text == "max" else int(text)
        if allowed >= _NO_LIMIT_FROM:  # before memory.stat, which is slow to read
            return _UNLIMITED
        used = int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except OSError:
        return _UNLIMITED
    margin = min(_LARGEST_MARGIN, allowed // 32)
    return max(0, allowed - used + int(stat.get(reclaimable, 0)) - margin)
