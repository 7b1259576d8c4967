"""A process's cgroup, and what others on the machine took from it."""

import os
import re
import resource
import time
from pathlib import Path
from typing import Any

from experiments.machine.facts import NOT_FOUND, read

FILES = {
    # name: controller, its files in version 2, its files in version 1
    "cpuset_cpus": ("cpuset", ("cpuset.cpus.effective",), ("cpuset.effective_cpus",)),
    "cpuset_mems": ("cpuset", ("cpuset.mems.effective",), ("cpuset.effective_mems",)),
    "cpu_quota": ("cpu", ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")),
}


def limits(procfs: Path = Path("/proc"), process: str = "self") -> dict[str, str]:
    """The names of FILES: lists as the kernel writes them, and "QUOTA PERIOD" in microseconds.

    A quota of "max" or "-1" is none. "not found" where the controller is not mounted, as in a
    container without its view, or does not limit the group at all.

    Args:
        process: the PID of a process here; this one by default.
    """
    groups = read(procfs / process / "cgroup")
    mounts = read(procfs / "self/mountinfo")
    return {
        name: _limit(groups, mounts, controller, second, first)
        for name, (controller, second, first) in FILES.items()
    }


def quota(process: str = "self") -> float:
    """CPUs' worth of time that a process's cgroup may use; 0.0 where that is not limited."""
    words = limits(process=process)["cpu_quota"].split()
    if len(words) != 2 or not all(re.fullmatch(r"\d+", word) for word in words):
        return 0.0
    return int(words[0]) / max(int(words[1]), 1)


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
            contents = [read(folder / name) for name in (second if version == 2 else first)]
            if all(content not in ("", NOT_FOUND) for content in contents):
                return " ".join(contents)
            folder = folder.parent
    return NOT_FOUND


def _mounts(mounts: str, controller: str) -> list[tuple[int, str, Path]]:
    """Version, root and mount point of every mount that may hold a controller."""
    hierarchies = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        if kind == "cgroup2" or (kind == "cgroup" and controller in re.split(r"[ ,]", options)):
            root, mount = before.split()[3:5]
            hierarchies.append((2 if kind == "cgroup2" else 1, root, Path(mount)))
    return hierarchies


TICKS = os.sysconf("SC_CLK_TCK")  # per second, of /proc/stat
BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq in a line of /proc/stat
STOLEN = 7


Counters = dict[str, Any]
"""What the kernel counted so far, in seconds; None where it shows nothing.

`load` is the machine's load average over the last minute. `busy` and `stolen` are of one CPU: when
it ran anything, and when a hypervisor kept it from running. `own` is the time of this process's
threads on any CPU; `voluntary` and `involuntary` are its context switches.
"""


def counters(cpu: int, proc: Path = Path("/proc"), who: int = resource.RUSAGE_SELF) -> Counters:
    """What the kernel counted so far of a CPU and of this process, or thread (RUSAGE_THREAD)."""
    line = re.search(rf"^cpu{cpu} (.*)$", read(proc / "stat"), re.MULTILINE)
    ticks = [int(word) for word in line[1].split()] if line else []
    load = re.match(r"[\d.]+", read(proc / "loadavg"))
    usage = resource.getrusage(who)
    return {
        "seconds": time.monotonic(),
        "load": float(load[0]) if load else None,
        "busy": sum(ticks[part] for part in BUSY) / TICKS if len(ticks) > max(BUSY) else None,
        "stolen": ticks[STOLEN] / TICKS if len(ticks) > STOLEN else None,
        "own": usage.ru_utime + usage.ru_stime,
        "voluntary": usage.ru_nvcsw,
        "involuntary": usage.ru_nivcsw,
    }


def between(before: Counters, after: Counters) -> dict[str, Any]:
    """What a result keeps of the time in between; `load` is the average before and after."""
    pairs = {name: (before[name], after[name]) for name in before}
    more = {
        name: None if None in pair else round(pair[1] - pair[0], 6) for name, pair in pairs.items()
    }
    return more | {"load": list(pairs["load"])}
