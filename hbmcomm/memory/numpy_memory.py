"""Makes NumPy itself allocate in a kind of memory, through its allocator hook (NEP 49).

memkind's functions have the signatures of the hook, where the kind is the context. So the hook is a
struct of their addresses, built by ctypes: no compiler, and no Python code in an allocation. Where
memkind lacks a kind, it gets a range of memory with that kind's policy as a kind of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from hbmcomm.errors import KindUnavailable, OutOfMemory
from hbmcomm.memory import memkind
from hbmcomm.memory.blocks import check_memkind, reserve_range
from hbmcomm.memory.kernel import Policy
from hbmcomm.memory.kinds import Kind, Nodes, resolve

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
        if memkind.has_kind(kind):
            check_memkind(resolved)
            handle = memkind.kind_address(kind)
        else:
            handle = _kind_of_range(resolved)
    except (memkind.MemkindError, OutOfMemory) as error:
        raise KindUnavailable(f"numpy_memory({kind!r}) works through memkind: {error}") from None
    previous = set_handler(_capsule(kind, handle))
    try:
        yield resolved
    finally:
        set_handler(previous)


def allocated_by_memkind(array: NDArray[Any]) -> bool:
    """Whether an array's own memory is memkind's, from a context of `numpy_memory`."""
    return (handler_name(array) or "").startswith(_NAME)


def _kind_of_range(kind: Kind) -> int:
    """The handle of a kind that memkind lacks, over as many addresses as there is memory."""
    key = kind.policy, kind.nodes
    if key not in _of_ranges:
        block = reserve_range(kind)
        _of_ranges[key] = memkind.new_kind(block.address, block.nbytes)
        _keep(block)  # arrays are in it
    return _of_ranges[key]


_of_ranges: dict[tuple[Policy, Nodes], int] = {}


@cache
def _capsule(kind: str, handle: int) -> Any:
    """The hook for a kind, created once and never freed: arrays point to it."""
    addresses = (memkind.function_address(name) for name in memkind.NUMPY_FUNCTIONS)
    allocator = _Allocator(handle, *addresses)
    handler = _Handler(f"{_NAME}{kind}".encode(), 1, allocator)
    _keep(handler)
    return capsule(ctypes.addressof(handler))


_NUMPY_CORE = "numpy._core._multiarray_umath"  # the module with the table; not public
_SET_HANDLER = 304  # entry of PyDataMem_SetHandler in NumPy's table of C functions, since 1.22
_CAPSULE_NAME = b"mem_handler"  # NumPy refuses capsules of other names

# Prototypes of our own: the functions of ctypes.pythonapi itself are shared with other packages.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetContext", ctypes.pythonapi)
)
_set_destructor = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetDestructor", ctypes.pythonapi)
)
_keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
# What is kept stays for ever: arrays outlive this module when a process ends.
_keep(_CAPSULE_NAME)


def capsule(handler: int, end: int | None = None, owner: object = None) -> Any:
    """A capsule of a PyDataMem_Handler; every array that it allocates refers to it.

    Args:
        handler: The handler's address.
        end: Address of a C function that the capsule calls when the last array is freed.
        owner: Kept alive until then: it is the capsule's context, and `end` must release it.
    """
    hook = _new(handler, _CAPSULE_NAME, None)
    if end is not None:
        _keep(owner)
        _set_context(hook, id(owner))
        _set_destructor(hook, end)
    return hook


def handler_name(array: NDArray[Any]) -> str | None:
    """The name of the handler that allocated an array's memory; None for a view."""
    allocator_name: str | None = import_module(_NUMPY_CORE).get_handler_name(array)
    return allocator_name


def addresses() -> tuple[int, int, int]:
    """The addresses of PyCapsule_GetPointer, PyCapsule_GetContext and Py_DecRef, for C."""
    names = ("PyCapsule_GetPointer", "PyCapsule_GetContext", "Py_DecRef")
    raw = (ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in names)
    pointer, context, release = (int(address or 0) for address in raw)
    return pointer, context, release


def _numpy_function(entry: int) -> int:
    """The address of an entry in the table of C functions that NumPy exports to extensions."""
    table = _pointer(import_module(_NUMPY_CORE)._ARRAY_API, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[entry])


set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_function(_SET_HANDLER))
"""Installs a capsule for the calling thread's context; returns the previous one."""
