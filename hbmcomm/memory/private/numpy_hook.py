"""NumPy's allocator hook (NEP 49) from Python: wraps handlers in capsules and installs them.

A handler is a struct of C functions that allocate. The hook is called through ctypes: no compiler
and none of NumPy's headers are needed.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

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


def capsule(handler: int, end: int | None = None, owner: object = None) -> Any:
    """A capsule of a PyDataMem_Handler; every array that it allocates refers to it.

    Args:
        handler: The handler's address.
        end: Address of a C function that the capsule calls when the last array is freed.
        owner: Kept alive until then: it is the capsule's context, and `end` must release it.
    """
    found = _new(handler, _CAPSULE_NAME, None)
    if end is not None:
        _keep(owner)
        _set_context(found, id(owner))
        _set_destructor(found, end)
    return found


def handler_name(array: NDArray[Any]) -> str | None:
    """The name of the handler that allocated an array's memory; None for a view."""
    found: str | None = import_module(_NUMPY_CORE).get_handler_name(array)
    return found


def addresses() -> tuple[int, int, int]:
    """The addresses of PyCapsule_GetPointer, PyCapsule_GetContext and Py_DecRef, for C."""
    names = ("PyCapsule_GetPointer", "PyCapsule_GetContext", "Py_DecRef")
    found = (ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in names)
    pointer, context, release = (int(address or 0) for address in found)
    return pointer, context, release


def _numpy_function(entry: int) -> int:
    """The address of an entry in the table of C functions that NumPy exports to extensions."""
    table = _pointer(import_module(_NUMPY_CORE)._ARRAY_API, None)
    return int(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[entry])


set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_function(_SET_HANDLER))
"""Installs a capsule for the calling thread's context; returns the previous one."""
