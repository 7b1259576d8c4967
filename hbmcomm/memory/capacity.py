"""How much memory a strict kind can still give: free memory of its nodes, and the cgroup's limit.

Past a strict bind's free memory no call fails: the kernel kills the process at the first touch. So
this looks first, keeps a margin, and populates blocks step by step.
"""

from __future__ import annotations

from pathlib import Path

from hbmcomm.errors import OutOfMemory
from hbmcomm.memory import kernel, sysfs
from hbmcomm.memory.cgroup import headroom
from hbmcomm.memory.kinds import Kind

MIB = 2**20
STEP = 64 * MIB
"""Bytes populated between two looks at the free memory."""


def require(kind: Kind, nbytes: int) -> None:
    """Raises OutOfMemory unless the kind's nodes and the cgroup have `nbytes` to give now."""
    free = free_bytes(kind.nodes)
    if nbytes > free:
        raise OutOfMemory(
            f"{kind.name}: asked for {_mib(nbytes)} on node {sysfs.format_list(kind.nodes)}, "
            f"{_mib(free)} are free there; ask for less, free arrays, "
            "or take a kind that may spill, such as regular or hbw_preferred"
        )
    room = headroom()
    if nbytes > room:
        raise OutOfMemory(
            f"{kind.name}: asked for {_mib(nbytes)}, the memory limit of this cgroup leaves "
            f"{_mib(room)}; ask for less or raise it (docker: --memory)"
        )


def populate(kind: Kind, address: int, nbytes: int) -> None:
    """Makes every page of a block, once required, be there; OutOfMemory if others were faster."""
    for start in range(0, nbytes, STEP):
        length = min(STEP, nbytes - start)
        if start:
            require(kind, length)
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
    margin = min(64 * MIB, memory.total // 32)
    return max(0, memory.available - margin)


def _mib(nbytes: int) -> str:
    return f"{nbytes / MIB:,.0f} MiB"
