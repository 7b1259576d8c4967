"""The limits of memory and CPU time of this process's cgroup, in versions 1 and 2 of cgroups.

A limit of any group between the process's own and the root of the mount counts.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

_UNLIMITED = sys.maxsize
_NO_LIMIT_FROM = 2**62  # version 1 spells "no limit" as the largest whole number of pages
_LARGEST_MARGIN = 64 * 2**20
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
    found = (_quota(folder, version) for version, folder in _folders(procfs, "cpu"))
    return tuple(quota for quota in found if quota is not None)


@cache
def _folders(procfs: Path, controller: str) -> list[tuple[str, Path]]:
    """Version and folder of each group that limits this process; read once."""
    try:
        groups = (procfs / "self/cgroup").read_text()
        mounts = (procfs / "self/mountinfo").read_text()
    except OSError:
        return []
    found = []
    for version, root, mount in _mounts(mounts, controller):
        names = rf"\d+:(?:[^:]*,)?{controller}(?:,[^:]*)?" if version == "cgroup" else "0:"
        own = re.search(rf"^{names}:(.*)$", groups, re.MULTILINE)
        if own is None:
            continue
        # In a container the group's path is the host's, and the mount shows the group as its root.
        inside = own[1].removeprefix(root.rstrip("/")) if own[1].startswith(root) else "/"
        folder = mount / inside.lstrip("/")
        while folder.is_relative_to(mount):
            found.append((version, folder))
            folder = folder.parent
    return found


def _mounts(mounts: str, controller: str) -> list[tuple[str, str, Path]]:
    """Version, root and mount point of each cgroup mount that may have a controller."""
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        version, _, options = after.partition(" ")
        named = re.split(r"[ ,]", options)
        if version == "cgroup2" or (version == "cgroup" and controller in named):
            root, mount = before.split()[3:5]
            found.append((version, root, Path(mount)))
    return found


def _quota(folder: Path, version: str) -> Quota | None:
    try:
        if version == "cgroup2":
            allowed, period = (folder / "cpu.max").read_text().split()
        else:
            allowed = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text()
        if allowed in ("max", "-1"):
            return None
        state = folder.stat()
        return Quota((state.st_dev, state.st_ino), int(allowed) / int(period))
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
