"""Reads /sys about memory: nodes, HMAT values, tiers, dax devices, caches.

One function per subject; each takes the root of a sysfs tree. Decides nothing. A missing file
leaves its value out: old kernels and laptops have fewer files than supercomputers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hbmcomm.memory.topology import Cache, DaxDevice, Node, Tier
from hbmcomm.quantities import MIB

INTERLEAVE_WEIGHTS = "kernel/mm/mempolicy/weighted_interleave"
"""Folder with a file nodeN for each node: its weight, 1 to 255."""

MOST_NUMBER = 2**16
"""More than any kernel's CPU or node has: a longer list is a mistake, and would fill the memory."""


class NodeMemory(NamedTuple):
    """Bytes of a node; `available` adds the page cache that the kernel reclaims on demand."""

    total: int
    free: int
    available: int


def parse_list(text: str) -> tuple[int, ...]:
    """The numbers in the kernel's list format: "0-3,8" is 0, 1, 2, 3, 8; else ValueError."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        start, dash, end = part.partition("-")
        first, last = int(start), int(end if dash else start)
        if not first <= last <= MOST_NUMBER:
            raise ValueError(f"{part}: no range of numbers up to {MOST_NUMBER}")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_list(numbers: tuple[int, ...]) -> str:
    """The inverse of `parse_list`: (0, 1, 2, 3, 8) is "0-3,8"; no numbers are "none"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans = (f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return ",".join(spans) or "none"


def nodes(sysfs: Path) -> tuple[Node, ...]:
    """Every NUMA node; empty where the kernel has no NUMA support."""
    root = sysfs / "devices/system/node"
    numbers = _numbered(root, "node")
    weights = sysfs / INTERLEAVE_WEIGHTS
    return tuple(
        _node(root / f"node{number}", number, numbers, _text(weights / f"node{number}"))
        for number in numbers
    )


def node_memory(sysfs: Path, number: int) -> NodeMemory:
    """Memory of one node now, in bytes, from its meminfo."""
    text = (sysfs / f"devices/system/node/node{number}/meminfo").read_text()
    return parse_meminfo(text)


def parse_meminfo(text: str) -> NodeMemory:
    """Bytes from a node's meminfo, or from /proc/meminfo, which spells the same fields."""
    kib = {name: int(value) for name, value in re.findall(r"(\S+):\s+(\d+) kB", text)}
    free = kib.get("MemFree", 0)
    cache = kib.get("Active(file)", 0) + kib.get("Inactive(file)", 0)
    # The kernel's own MemAvailable counts half of what slabs could give back.
    available = free + cache + kib.get("SReclaimable", 0) // 2
    return NodeMemory(kib.get("MemTotal", 0) * 1024, free * 1024, available * 1024)


def tiers(sysfs: Path) -> tuple[Tier, ...]:
    """The kernel's memory tiers (since 6.1), fastest first."""
    root = sysfs / "devices/virtual/memory_tiering"
    return tuple(
        Tier(number, parse_list(_text(root / f"memory_tier{number}/nodelist") or ""))
        for number in _numbered(root, "memory_tier")
    )


def dax_devices(sysfs: Path) -> tuple[DaxDevice, ...]:
    """The devices on the dax bus; `target_node` is the node each is or would become."""
    devices = sysfs / "bus/dax/devices"
    return tuple(
        DaxDevice(
            name=device.name,
            target_node=int(_text(device / "target_node") or -1),
            size_bytes=int(_text(device / "size") or 0),
            online=(device / "driver").resolve().name == "kmem",
        )
        for device in sorted(devices.glob("dax*"))
    )


def caches(sysfs: Path) -> tuple[Cache, ...]:
    """Last-level caches of the CPUs, then the memory-side caches (MCDRAM or HBM in cache mode)."""
    return (*_last_level_caches(sysfs / "devices/system/cpu"), *_memory_side_caches(sysfs))


def online_cpus(sysfs: Path) -> tuple[int, ...]:
    return parse_list(_text(sysfs / "devices/system/cpu/online") or "0")


def _node(folder: Path, number: int, numbers: tuple[int, ...], weight: str | None) -> Node:
    memory = parse_meminfo(_text(folder / "meminfo") or "")
    distances = [int(value) for value in (_text(folder / "distance") or "").split()]
    # access1 considers CPUs only; access0 any initiator, which may be a GPU.
    access = folder / "access1/initiators"
    if not access.is_dir():
        access = folder / "access0/initiators"
    return Node(
        id=number,
        cpus=parse_list(_text(folder / "cpulist") or ""),
        total_bytes=memory.total,
        free_bytes=memory.free,
        available_bytes=memory.available,
        distances=dict(zip(numbers, distances, strict=False)),
        initiators=_numbered(access, "node"),
        read_bandwidth=_scaled(access / "read_bandwidth", MIB),
        write_bandwidth=_scaled(access / "write_bandwidth", MIB),
        read_latency=_scaled(access / "read_latency", 1e-9),
        write_latency=_scaled(access / "write_latency", 1e-9),
        interleave_weight=int(weight) if weight else None,
    )


def _last_level_caches(cpus: Path) -> list[Cache]:
    last_level: list[Cache] = []
    covered: set[int] = set()
    for cpu in _numbered(cpus, "cpu"):
        if cpu in covered:
            continue
        indices = list((cpus / f"cpu{cpu}/cache").glob("index*"))
        if not indices:
            continue
        last = max(indices, key=lambda path: int(_text(path / "level") or 0))
        sharing = parse_list(_text(last / "shared_cpu_list") or str(cpu))
        covered.update(sharing)
        size = int((_text(last / "size") or "0K").rstrip("K")) * 1024
        last_level.append(Cache(int(_text(last / "level") or 0), size, cpus=sharing))
    return last_level


def _memory_side_caches(sysfs: Path) -> list[Cache]:
    root = sysfs / "devices/system/node"
    return [
        Cache(level, int(size), node=number)
        for number in _numbered(root, "node")
        for level in _numbered(root / f"node{number}/memory_side_cache", "index")
        if (size := _text(root / f"node{number}/memory_side_cache/index{level}/size"))
    ]


def _numbered(folder: Path, prefix: str) -> tuple[int, ...]:
    """The numbers n of the entries `<prefix>n` of a folder, in order."""
    names = (path.name.removeprefix(prefix) for path in folder.glob(f"{prefix}[0-9]*"))
    return tuple(sorted(int(name) for name in names if name.isdigit()))


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _scaled(path: Path, unit: float) -> float | None:
    """The file's number in SI units; None where it is missing or zero, which means unknown."""
    text = _text(path)
    return float(text) * unit if text and text != "0" else None
