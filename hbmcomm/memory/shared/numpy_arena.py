"""Makes NumPy itself allocate in shared memory, through its allocator hook (NEP 49).

The functions that NumPy calls are in C (`_native/numpy_handler.c`), over the heap of a pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hbmcomm.errors import OutOfMemory
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.private import numpy_hook
from hbmcomm.memory.shared.heap import ffi, lib
from hbmcomm.memory.shared.pool import Pool


@contextmanager
def numpy_memory(pool: Pool) -> Iterator[Kind]:
    """Every NumPy array of 64 KiB or more that is made inside is in a pool.

    Smaller arrays, and those for which the pool has no memory, get NumPy's ordinary memory.
    Contexts nest. One applies to the calling thread; threads started inside do not inherit it. The
    pool lives as long as any of the arrays.
    """
    previous = numpy_hook.set_handler(_capsule(pool))
    try:
        yield pool.kind
    finally:
        numpy_hook.set_handler(previous)


def _capsule(pool: Pool) -> Any:
    handler = lib.hbm_handler_new(pool.heap.handle, pool.address, pool.nbytes)
    if not handler:
        raise OutOfMemory("no memory for NumPy's allocator hook; free arrays, or leave the context")
    return numpy_hook.capsule(handler, _END, pool)


lib.hbm_handler_python(*numpy_hook.addresses())
_END = int(ffi.cast("uintptr_t", ffi.addressof(lib, "hbm_handler_end")))
