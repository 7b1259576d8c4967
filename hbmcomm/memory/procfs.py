"""Reads /proc: the processor, GPUs' memory nodes, the allowed nodes, memory, the boot.

Each function takes the root of a procfs tree. Decides nothing.
"""

from __future__ import annotations

import itertools
import mmap
import re
import zlib
from functools import cache
from pathlib import Path

from hbmcomm.memory.sysfs import NodeMemory, parse_list, parse_meminfo


def processor(procfs: Path) -> dict[str, str]:
    """The fields of the first processor in cpuinfo, as text; empty where unreadable."""
    try:
        with (procfs / "cpuinfo").open() as lines:
            first = list(itertools.takewhile(str.strip, lines))
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first)
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpu_nodes(procfs: Path) -> dict[int, str]:
    """{node: PCI address} of GPUs with memory that is a NUMA node, from NVIDIA's driver."""
    addresses = {}
    for status in sorted((procfs / "driver/nvidia/gpus").glob("*/numa_status")):
        node = re.search(r"Node:\s*(\d+)", status.read_text())
        if node:
            addresses[int(node[1])] = status.parent.name
    return addresses


def allowed_nodes(procfs: Path) -> tuple[int, ...] | None:
    """The nodes that this process may allocate on (its cpuset); None where unknown."""
    allowed = re.search(r"^Mems_allowed_list:\s*(\S+)", (procfs / "self/status").read_text(), re.M)
    return parse_list(allowed[1]) if allowed else None


def machine_memory(procfs: Path) -> NodeMemory:
    """Memory of the whole machine, in bytes."""
    return parse_meminfo((procfs / "meminfo").read_text())


@cache
def boot(procfs: Path) -> int:
    """A number of this boot of the system, the same in every container; never 0; read once."""
    return zlib.crc32((procfs / "sys/kernel/random/boot_id").read_bytes()) or 1


def watermarks(procfs: Path) -> dict[int, int]:
    """{node: bytes} that the kernel keeps free for itself, the high watermarks of all its zones.

    Below the lowest of the three watermarks it kills processes. Empty where unknown.
    """
    try:
        text = (procfs / "zoneinfo").read_text()
    except OSError:
        return {}
    reserves: dict[int, int] = {}
    for zone in re.split(r"^Node ", text, flags=re.MULTILINE)[1:]:
        high = re.search(r"^ +high +(\d+)", zone, re.MULTILINE)
        node = int(zone.partition(",")[0])
        reserves[node] = reserves.get(node, 0) + (int(high[1]) * mmap.PAGESIZE if high else 0)
    return reserves
