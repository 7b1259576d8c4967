"""How much memory the cgroup of this process still allows, in version 1 and version 2 of cgroups.

A limit anywhere between the process's own group and the root of the mount counts.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

_UNLIMITED = sys.maxsize
_NO_LIMIT_FROM = 2**62  # version 1 spells "no limit" as the largest whole number of pages
_LARGEST_MARGIN = 64 * 2**20
_FILES = {
    # version: limit, usage, and the field of memory.stat that the kernel gives up on demand
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
}


def headroom(procfs: Path = Path("/proc")) -> int:
    """Bytes to have until the nearest memory limit; a very large number where there is none.

    A part of each limit is kept back, for page tables and what the processes need beside: past the
    limit the kernel kills.
    """
    return min((_room(folder, version) for version, folder in _folders(procfs)), default=_UNLIMITED)


@cache
def _folders(procfs: Path) -> list[tuple[str, Path]]:
    """The folders, with their version, of the groups that limit this process; looked up once."""
    try:
        groups = (procfs / "self/cgroup").read_text()
        mounts = (procfs / "self/mountinfo").read_text()
    except OSError:
        return []
    found = []
    for version, root, mount in _memory_mounts(mounts):
        pattern = r"^0::(.*)$" if version == "cgroup2" else r"^\d+:(?:.*,)?memory(?:,.*)?:(.*)$"
        own = re.search(pattern, groups, re.MULTILINE)
        if own is None:
            continue
        # In a container the group's path is the host's, and the mount shows the group as its root.
        inside = own[1].removeprefix(root.rstrip("/")) if own[1].startswith(root) else "/"
        folder = mount / inside.lstrip("/")
        while folder.is_relative_to(mount):
            found.append((version, folder))
            folder = folder.parent
    return found


def _memory_mounts(mounts: str) -> list[tuple[str, str, Path]]:
    """Version, root and mount point of each cgroup mount that may hold the memory controller."""
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        version, _, options = after.partition(" ")
        if version == "cgroup2" or (version == "cgroup" and "memory" in options.split(",")):
            root, mount = before.split()[3:5]
            found.append((version, root, Path(mount)))
    return found


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
