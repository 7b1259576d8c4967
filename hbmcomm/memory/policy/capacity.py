"""How much memory a strict kind can still give: free memory of its nodes, and the cgroup's limit.

Past a strict bind's free memory no call fails: the kernel kills the process at the first touch. So
this looks first, keeps a margin, and populates blocks step by step.
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

MIB = 2**20
STEP = 64 * MIB
"""Bytes populated at most between two looks at the free memory."""
SMALLEST_STEP = 2 * MIB
SHARERS = 16
"""Ranks that may take the last of a node at a time: none of them goes further, unseen by the
others, than its part of what is free."""


def require(kind: Kind, nbytes: int, had: int = 0) -> int:
    """The bytes that the kind's nodes and the cgroup can give now, at least `nbytes`.

    Args:
        kind: Whose nodes.
        nbytes: What is still wanted.
        had: What was had before of the same block, for the message.

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
    """Offset and length of the pieces of a block, each when all that is left of it can be had.

    The less is free, the smaller they are, since other ranks may be taking the same.

    Raises:
        OutOfMemory: There is no more.
    """
    start = 0
    while start < nbytes:
        share = require(kind, nbytes - start, start) // SHARERS // SMALLEST_STEP * SMALLEST_STEP
        length = min(nbytes - start, max(SMALLEST_STEP, min(STEP, share)))
        yield start, length
        start += length


def populate(kind: Kind, address: int, nbytes: int) -> None:
    """Makes every page of a block be there; OutOfMemory where the memory is short."""
    for start, length in steps(kind, nbytes):
        try:
            kernel.populate(address + start, length)
        except OSError as error:
            raise OutOfMemory(
                f"{kind.name}: {_mib(start)} of {_mib(nbytes)} on node "
                f"{sysfs.format_list(kind.nodes)} could be had ({error}); ask for less"
            ) from None


def free_bytes(nodes: tuple[int, ...]) -> int:
    """Bytes that the nodes can give together, a margin for the kernel's reserves kept back."""
    return sum(_free_on(node) for node in nodes)


def _free_on(node: int) -> int:
    try:
        memory = sysfs.node_memory(Path("/sys"), node)
    except OSError:  # a kernel without NUMA support: the machine is the node
        memory = sysfs.parse_meminfo(Path("/proc/meminfo").read_text())
    margin = _kept_by_kernel().get(node, 0) + min(64 * MIB, memory.total // 32)
    return max(0, memory.available - margin)


@cache
def _kept_by_kernel() -> dict[int, int]:
    """Read once: it takes long where there are many CPUs, and changes only by an administrator."""
    return procfs.watermarks(Path("/proc"))


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f} MiB"
