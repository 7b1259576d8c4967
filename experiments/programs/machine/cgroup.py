"""Which CPUs, nodes and share of time this process's control groups leave it. Reads, never writes.

A quota throttles ranks that spin; no benchmark shows it but as a long tail.
"""

import re
from pathlib import Path

from experiments.programs.machine.facts import NOT_FOUND, read

FILES = {
    # name: controller, its files in version 2, its files in version 1
    "cpuset_cpus": ("cpuset", ("cpuset.cpus.effective",), ("cpuset.effective_cpus",)),
    "cpuset_mems": ("cpuset", ("cpuset.mems.effective",), ("cpuset.effective_mems",)),
    "cpu_quota": ("cpu", ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
}


def limits(procfs: Path = Path("/proc")) -> dict[str, str]:
    """The names of FILES: lists as the kernel writes them, and "QUOTA PERIOD" in microseconds.

    A quota of "max" or "-1" is none. "not found" where the controller is not mounted, as in a
    container without its view, or does not limit the group at all.
    """
    groups = read(procfs / "self/cgroup")
    mounts = read(procfs / "self/mountinfo")
    return {
        name: _limit(groups, mounts, controller, second, first)
        for name, (controller, second, first) in FILES.items()
    }


def _limit(
    groups: str, mounts: str, controller: str, second: tuple[str, ...], first: tuple[str, ...]
) -> str:
    """The nearest group, from the process's own upwards, that has the file."""
    for version, root, mount in _mounts(mounts, controller):
        pattern = r"^0::(.*)$" if version == 2 else rf"^\d+:(?:.*,)?{controller}(?:,.*)?:(.*)$"
        own = re.search(pattern, groups, re.MULTILINE)
        if own is None:
            continue
        # a container sees the host's path of its group, mounted as a root
        inside = own[1].removeprefix(root.rstrip("/")) if own[1].startswith(root) else "/"
        folder = mount / inside.lstrip("/")
        while folder.is_relative_to(mount):
            found = [read(folder / name) for name in (second if version == 2 else first)]
            if all(each not in ("", NOT_FOUND) for each in found):
                return " ".join(found)
            folder = folder.parent
    return NOT_FOUND


def _mounts(mounts: str, controller: str) -> list[tuple[int, str, Path]]:
    """Version, root and mount point of every mount that may hold a controller."""
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        if kind == "cgroup2" or (kind == "cgroup" and controller in re.split(r"[ ,]", options)):
            root, mount = before.split()[3:5]
            found.append((2 if kind == "cgroup2" else 1, root, Path(mount)))
    return found
