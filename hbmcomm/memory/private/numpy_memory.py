"""Makes NumPy itself allocate in a kind of memory, through its allocator hook (NEP 49).

memkind's functions have the signatures of the hook, where the kind is the context. So the hook is a
struct of their addresses, built by ctypes: no compiler, and no Python code in an allocation.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numpy.typing import NDArray

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory.policy.kinds import Kind, resolve
from hbmcomm.memory.private import memkind, numpy_hook
from hbmcomm.memory.private.blocks import check_memkind

_NAME = "memkind "
"""Prefix of the name of each handler; the kind follows."""


class _Allocator(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")
    )


class _Handler(ctypes.Structure):
    """PyDataMem_Handler, version 1, of numpy/ndarraytypes.h."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    )


@contextmanager
def numpy_memory(kind: str) -> Iterator[Kind]:
    """Every NumPy array created inside is in memory of this kind, and is freed into it later.

    Contexts nest. One applies to the calling thread; threads started inside do not inherit it.
    NumPy calls memkind directly: beyond the free memory of a strict kind the kernel kills the
    process, where `hbmcomm.empty` raises OutOfMemory. Create large arrays with that.

    Raises:
        ValueError: No such kind.
        KindUnavailable: This machine has none of it, or libmemkind is missing or uses other nodes.
    """
    resolved = resolve(kind)
    try:
        check_memkind(resolved)
    except memkind.MemkindError as error:
        raise KindUnavailable(f"numpy_memory({kind!r}) works through memkind: {error}") from None
    previous = numpy_hook.set_handler(_capsule(kind))
    try:
        yield resolved
    finally:
        numpy_hook.set_handler(previous)


def allocated_by_memkind(array: NDArray[Any]) -> bool:
    """Whether an array's own memory is memkind's, from a context of `numpy_memory`."""
    return (numpy_hook.handler_name(array) or "").startswith(_NAME)


@cache
def _capsule(kind: str) -> Any:
    """The hook for a kind, created once and never freed: arrays point to it."""
    addresses = (memkind.function_address(name) for name in memkind.NUMPY_FUNCTIONS)
    allocator = _Allocator(memkind.kind_address(kind), *addresses)
    handler = _Handler(f"{_NAME}{kind}".encode(), 1, allocator)
    _KEPT.append(handler)
    return numpy_hook.capsule(ctypes.addressof(handler))


_KEPT: list[_Handler] = []
