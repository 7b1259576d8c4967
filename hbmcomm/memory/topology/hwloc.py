"""Asks libhwloc, where it is installed, for the subtype of each NUMA node (HBM, MCDRAM, CXL ...).

Opened at run time; declares only the five calls and three fields of hwloc 2 that it uses.
"""

from __future__ import annotations

from typing import Any

from hbmcomm._native import _libraries

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
