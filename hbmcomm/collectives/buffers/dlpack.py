"""The memory of objects that have `__dlpack__` and no buffer, as mpi4py reads it.

`MPI.buffer` finds the memory and keeps its capsule. It does not return the type of the elements,
so this module reads that field of the capsule itself. `numpy.from_dlpack` would return both, but
it consumes the capsule, and objects that free their memory with the capsule then crash.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple

from mpi4py import MPI

_ON_THE_CPU = (1, 3, 11, 13)
"""DLDeviceType: CPU, and memory of CUDA and ROCm that the CPU can read."""

_DTYPE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}
"""Offset of the three fields of DLDataType (dlpack.h) in the target of a capsule of that name."""

_FORMATS = {
    0: {8: "b", 16: "h", 32: "i", 64: "l"},
    1: {8: "B", 16: "H", 32: "I", 64: "L"},
    2: {16: "e", 32: "f", 64: "d", 128: "g"},
    5: {32: "Ze", 64: "Zf", 128: "Zd"},
    6: {8: "?"},
}
"""mpi4py's name for an element, by DLDataTypeCode and bits."""

_PAIRS = {2: {32: "Zf", 64: "Zd", 128: "Zg"}}
"""Elements of two lanes: complex numbers. The widest have 256 bits, and the field ends at 255."""


class Exported(NamedTuple):
    """`nbytes` from `address` on; `owner` keeps that memory alive."""

    owner: object
    address: int
    nbytes: int
    readonly: bool
    format: str


def exported(buffer: Any) -> Exported:
    """The memory of an object without the buffer protocol.

    Raises:
        TypeError: It has no `__dlpack__`, or its memory is not the CPU's.
        BufferError: It has gaps.
    """
    if not hasattr(buffer, "__dlpack__") or buffer.__dlpack_device__()[0] not in _ON_THE_CPU:
        raise TypeError
    memory = MPI.buffer(buffer)
    return Exported(memory, memory.address, memory.nbytes, memory.readonly, _format(memory.obj))


def _format(capsule: object) -> str:
    name = _name(capsule)
    field = ctypes.string_at(_pointer(capsule, name) + _DTYPE_AT[name], 4)
    code, bits, lanes = struct.unpack("=BBH", field)
    return {1: _FORMATS, 2: _PAIRS}.get(lanes, {}).get(code, {}).get(bits, "B")


# By index: the functions that are attributes are shared with other packages.
_name = ctypes.pythonapi["PyCapsule_GetName"]
_name.restype, _name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
