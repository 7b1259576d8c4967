"""What disturbed a rank while it measured: load, stolen time, other work on its CPU, switches.

Read from the kernel's own counters, before and after; experiments/analysis/disturbed.py says
what they mean. The kernel's counters of a CPU are the machine's, in containers too.
"""

import os
import re
import resource
import time
from pathlib import Path
from typing import Any

from experiments.programs.machine.facts import read

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
