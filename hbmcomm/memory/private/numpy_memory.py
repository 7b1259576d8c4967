"""Makes NumPy itself allocate in a kind of memory, through its allocator hook (NEP 49).

memkind's functions have the signatures that the hook wants, with the kind for context, so the hook
is a struct of their addresses, made through ctypes: no compiler, no Python in an allocation's path.
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
from hbmcomm.memory.private.blocks import memkind_serves

_NAME = "memkind "
"""Begins the name of each of our handlers; the kind follows."""


class _Allocator(ctypes.Structure):
    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
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
    """Every NumPy array made inside lives in memory of this kind, and is freed into it later.

    Nests. Holds for the calling thread; threads started inside do not inherit it. NumPy calls
    memkind without asking us: past the free memory of a strict kind the kernel ends the process,
    where `hbmcomm.empty` raises OutOfMemory, so make big arrays with that.

    Raises:
        ValueError: No such kind.
        KindUnavailable: This machine has none of it, or libmemkind is missing or disagrees.
    """
    resolved = resolve(kind)
    try:
        memkind_serves(resolved)
    except memkind.MemkindError as error:
        raise KindUnavailable(f"numpy_memory({kind!r}) works through memkind: {error}") from None
    previous = numpy_hook.set_handler(_capsule(kind))
    try:
        yield resolved
    finally:
        numpy_hook.set_handler(previous)


def gave(array: NDArray[Any]) -> bool:
    """Whether memkind gave the memory that an array owns, in a context of `numpy_memory`."""
    return (numpy_hook.handler_name(array) or "").startswith(_NAME)


@cache
def _capsule(kind: str) -> Any:
    """The hook for a kind, made once and kept for ever: arrays point to it until they are freed."""
    addresses = (memkind.function_address(name) for name in memkind.NUMPY_FUNCTIONS)
    allocator = _Allocator(memkind.kind_address(kind), *addresses)
    handler = _Handler(f"{_NAME}{kind}".encode(), 1, allocator)
    _KEPT.append(handler)
    return numpy_hook.capsule(ctypes.addressof(handler))


_KEPT: list[_Handler] = []
