"""How much memory a strict kind still has: free memory of its nodes, and the cgroup's limit.

An allocation beyond the free memory of a strict bind does not fail: the kernel kills the process at
the first access. So this module checks first, keeps a margin, and populates blocks step by step.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hbmcomm.errors import OutOfMemory
from hbmcomm.memory.policy import kernel
from hbmcomm.memory.policy.cgroup import headroom
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.topology import procfs, sysfs
from hbmcomm.quantities import MIB

STEP = 64 * MIB
"""At most so many bytes are populated between two checks of the free memory."""
SMALLEST_STEP = 2 * MIB
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
    start = 0
    while start < nbytes:
        share = require(kind, nbytes - start, start) // SHARERS // SMALLEST_STEP * SMALLEST_STEP
        length = min(nbytes - start, max(SMALLEST_STEP, min(STEP, share)))
        yield start, length
        start += length


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
    margin = _kernel_reserves().get(node, 0) + min(64 * MIB, memory.total // 32)
    return max(0, memory.available - margin)


@cache
def _kernel_reserves() -> dict[int, int]:
    """Read once: it is slow with many CPUs, and only an administrator changes it."""
    return procfs.watermarks(Path("/proc"))


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f} MiB"
