"""The topology of a machine's memory, from sysfs, procfs, hwloc and the HBM detector."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hbmcomm._native import _libraries
from hbmcomm.memory import hbm_detection, procfs
from hbmcomm.memory import sysfs as reader
from hbmcomm.memory.topology import Node, Topology

CONFIGURATION = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")
"""The environment variables (memkind's own) that change what counts as HBM or as dax_kmem."""


def topology(sysfs: str = "/sys", procfs: str = "/proc") -> Topology:
    """Nodes, CPUs, memory, distances, bandwidths, tiers, dax devices; which are HBM and why.

    Read again at each call. Bytes, bytes/s, seconds. For recorded trees of another machine hwloc is
    not asked, because it can only read the real one.
    """
    nodes = reader.nodes(Path(sysfs)) or (_whole_machine(Path(sysfs), Path(procfs)),)
    return _described(nodes, Path(sysfs), Path(procfs))


def current() -> Topology:
    """The topology of this machine, read once per process and configuration."""
    return _remembered(tuple(os.environ.get(name) for name in CONFIGURATION))


@lru_cache(maxsize=8)
def _remembered(_configuration: tuple[str | None, ...]) -> Topology:
    return topology()


def _described(nodes: tuple[Node, ...], sysfs: Path, proc: Path) -> Topology:
    processor = procfs.processor(proc)
    ask_hwloc = sysfs == Path("/sys") and any(node.total_bytes and not node.cpus for node in nodes)
    clues = hbm_detection.Clues(
        nodes=nodes,
        tiers=reader.tiers(sysfs),
        dax=reader.dax_devices(sysfs),
        caches=reader.caches(sysfs),
        processor=processor,
        gpu_nodes=procfs.gpu_nodes(proc),
        subtypes=subtypes() if ask_hwloc else {},
        environ={name: os.environ[name] for name in CONFIGURATION if name in os.environ},
    )
    finding = hbm_detection.find(clues)
    return Topology(
        nodes=tuple(replace(node, is_hbm=node.id in finding.nodes) for node in nodes),
        dax=clues.dax,
        tiers=clues.tiers,
        caches=clues.caches,
        processor=processor.get("model name", "unknown"),
        hbm=finding,
    )


def _whole_machine(sysfs: Path, proc: Path) -> Node:
    """The single node of a kernel without NUMA support."""
    memory = procfs.machine_memory(proc)
    return Node(
        id=0,
        cpus=reader.online_cpus(sysfs),
        total_bytes=memory.total,
        free_bytes=memory.free,
        available_bytes=memory.available,
        distances={0: 10},
    )


SONAME = "libhwloc.so.15"  # every hwloc 2.x; the fields below are the first of its struct hwloc_obj
_ffi: Any = _libraries.ffi
_NUMA_NODES = -3  # HWLOC_TYPE_DEPTH_NUMANODE


def subtypes() -> dict[int, str]:
    """Node number -> hwloc's subtype, for the nodes that have one; empty without hwloc."""
    try:
        lib: Any = _ffi.dlopen(SONAME)
    except OSError:
        return {}
    handle = _ffi.new("hwloc_topology_t *")
    if lib.hwloc_topology_init(handle) != 0:
        return {}
    try:
        if lib.hwloc_topology_load(handle[0]) != 0:
            return {}
        count = lib.hwloc_get_nbobjs_by_depth(handle[0], _NUMA_NODES)
        objects = [lib.hwloc_get_obj_by_depth(handle[0], _NUMA_NODES, i) for i in range(count)]
        return {
            object_.os_index: _ffi.string(object_.subtype).decode()
            for object_ in objects
            if object_.subtype
        }
    finally:
        lib.hwloc_topology_destroy(handle[0])
