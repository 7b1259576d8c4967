"""What disturbed a rank while it measured: load, stolen time, other work on its CPU, switches.

Read from the kernel's own counters, before and after; experiments/analysis/disturbed.py says
what they mean. The kernel's counters of a CPU are the machine's, in containers too.
"""

import os
import re
import resource
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.programs.machine.facts import read

TICKS = os.sysconf("SC_CLK_TCK")  # per second, of /proc/stat
BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq in a line of /proc/stat
STOLEN = 7


@dataclass(frozen=True)
class Counters:
    """The counters at one moment; seconds since they began, None where the kernel shows none.

    Attributes:
        at: by the monotonic clock.
        load: the machine's load average over the last minute.
        busy, stolen: of one CPU: when it ran anything, and when a hypervisor kept it from running.
        own: of this process's threads, on whichever CPU.
        voluntary, involuntary: context switches of this process.
    """

    at: float
    load: float | None
    busy: float | None
    stolen: float | None
    own: float
    voluntary: int
    involuntary: int


def counters(cpu: int, proc: Path = Path("/proc"), who: int = resource.RUSAGE_SELF) -> Counters:
    """What the kernel counted so far of a CPU and of this process, or thread (RUSAGE_THREAD)."""
    line = re.search(rf"^cpu{cpu} (.*)$", read(proc / "stat"), re.MULTILINE)
    ticks = [int(word) for word in line[1].split()] if line else []
    load = re.match(r"[\d.]+", read(proc / "loadavg"))
    usage = resource.getrusage(who)
    return Counters(
        at=time.monotonic(),
        load=float(load[0]) if load else None,
        busy=sum(ticks[part] for part in BUSY) / TICKS if len(ticks) > max(BUSY) else None,
        stolen=ticks[STOLEN] / TICKS if len(ticks) > STOLEN else None,
        own=usage.ru_utime + usage.ru_stime,
        voluntary=usage.ru_nvcsw,
        involuntary=usage.ru_nivcsw,
    )


def between(
    before: Counters, after: Counters
) -> dict[str, float | int | list[float | None] | None]:
    """What a result keeps of the time in between; `load` is the average before and after."""

    def more(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else round(other - one, 6)

    return {
        "seconds": more(before.at, after.at),
        "load": [before.load, after.load],
        "busy": more(before.busy, after.busy),
        "stolen": more(before.stolen, after.stolen),
        "own": more(before.own, after.own),
        "voluntary": after.voluntary - before.voluntary,
        "involuntary": after.involuntary - before.involuntary,
    }


class Span:
    """What disturbs a rank from its first order on.

    Before that the other launches of its block still start, on the same CPUs: what they import
    would count as work of others.
    """

    def __init__(self, cpu: int, who: int = resource.RUSAGE_SELF) -> None:
        self._now = partial(counters, cpu, who=who)
        self._before: Counters | None = None

    def begin(self) -> None:
        """An order came: count from now on, where it is the first."""
        self._before = self._before or self._now()

    def end(self) -> dict[str, float | int | list[float | None] | None]:
        """What a result keeps of the time since the first order; of none, where none came."""
        after = self._now()
        return between(self._before or after, after)
