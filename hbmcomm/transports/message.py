"""One normal form for all forms in which mpi4py takes the buffer of a message.

They are: a buffer, or [buffer, type], [buffer, count], [buffer, count, type],
[buffer, (count, displacement), type], [buffer, count, displacement, type]; also as tuples. Copies
between such memory and plain arrays. Knows no collective and raises no error of its own about a
buffer, because mpi4py's messages are better.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import struct
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm.transports import mpi_lock

Bytes = NDArray[np.uint8]
_PAIR = (list, tuple)


class Unreadable(Exception):
    """mpi4py refuses this buffer, or only mpi4py can read it: pass the whole call to it."""


def in_place(spec: object) -> bool:
    """Whether a buffer is left out: its data is where the result goes."""
    return spec is None or spec is MPI.IN_PLACE


class Message(NamedTuple):  # not a dataclass: every call creates one, and this is faster
    """`entries` of `datatype` from `address` on; `owner` keeps the memory alive."""

    owner: object
    address: int
    entries: int
    datatype: MPI.Datatype
    extent: int
    """Bytes from one entry to the next."""

    @property
    def nbytes(self) -> int:
        """Bytes of data without gaps."""
        return self.entries * self.datatype.size

    def part(self, index: int) -> Message:
        """The message of the same length, `index` such lengths further on."""
        return self._replace(address=self.address + index * self.entries * self.extent)

    def load(self) -> Bytes:
        """The message's data without gaps: a view where there are none, else a copy."""
        memory = self._memory()
        if self.gapless:
            return memory
        packed = np.empty(mpi_lock.pack_size(self.datatype, self.entries), np.uint8)
        end = self.datatype.Pack(memory, packed, 0, MPI.COMM_SELF) if self.entries else 0
        return packed[:end]

    def store(self, data: Bytes) -> None:
        """Write the result of another message's load() into this memory.

        Raises:
            MPI.Exception: ERR_TRUNCATE, it has another length than this message.
        """
        if data.nbytes != self.nbytes:
            raise MPI.Exception(MPI.ERR_TRUNCATE)
        if self.gapless:
            self._memory()[:] = data
        elif self.entries:
            self.datatype.Unpack(data, 0, self._memory(), MPI.COMM_SELF)

    @property
    def gapless(self) -> bool:
        """Whether its data is contiguous in memory."""
        return self.datatype.is_predefined and self.datatype.size == self.extent

    def _memory(self) -> Bytes:
        nbytes = self.entries * self.extent
        if not nbytes:
            return np.empty(0, np.uint8)
        memory: Any = MPI.buffer.fromaddress(self.address, nbytes)
        return np.frombuffer(memory, np.uint8)


class Moved:
    """A datatype of absolute addresses, made to count from the lowest of them, `address`."""

    def __init__(self, absolute: MPI.Datatype) -> None:
        self.address, _ = absolute.Get_true_extent()
        self.datatype = absolute.Create_hindexed([1], [-self.address]).Commit()

    def __del__(self) -> None:
        if not MPI.Is_finalized():
            self.datatype.Free()


def read_each(spec: Any, blocks: int, writable: bool = False) -> tuple[Message, ...]:
    """The messages, one for each block, that mpi4py reads from a specification of many.

    Blocks may differ in length and be anywhere in the buffer: [buffer, counts],
    [buffer, (counts, displacements)], each also with a type, or [buffer, counts, displacements,
    type]. Without counts the buffer is divided evenly.

    Raises:
        Unreadable: As for `read`.
    """
    try:
        return _read_each(*_items(spec, tuple), blocks, writable)
    except (TypeError, ValueError, BufferError, AttributeError, MPI.Exception) as error:
        raise Unreadable from error


def read(spec: Any, blocks: int = 1, writable: bool = False) -> Message:
    """The message that mpi4py reads from a buffer specification.

    Args:
        blocks: A buffer without a count holds that many messages; the first is returned.
        writable: The memory will be written.

    Raises:
        Unreadable: See there.
    """
    try:
        return _read(*_items(spec, _PAIR), blocks, writable)
    except (TypeError, ValueError, BufferError, AttributeError, MPI.Exception) as error:
        raise Unreadable from error


def _items(spec: Any, pair: Any) -> tuple[Any, Any, Any, Any]:
    """Buffer, count, displacement and type, None where left out.

    Args:
        pair: The types in which count and displacement come together.
    """
    if not isinstance(spec, list | tuple):
        return spec, None, None, None
    if len(spec) == 4:
        return spec[0], spec[1], spec[2], spec[3]
    if len(spec) == 2 and isinstance(spec[1], MPI.Datatype | str):
        return spec[0], None, None, spec[1]
    buffer, count, *rest = spec
    (datatype,) = rest or [None]
    count, displacement = count if isinstance(count, pair) else (count, None)
    return buffer, count, displacement, datatype


def _read_each(
    buffer: Any, counts: Any, displacements: Any, datatype: Any, blocks: int, writable: bool
) -> tuple[Message, ...]:
    whole = _read(buffer, None if counts is None else 0, None, datatype, 1, writable)
    if counts is None:
        share, more = divmod(whole.entries, blocks)
        counts = [share + (block < more) for block in range(blocks)]
    else:
        counts = _integers(counts, blocks)
    if displacements is None:
        displacements = [sum(counts[:block]) for block in range(blocks)]
    elif _is_integer(displacements):
        displacements = [operator.index(displacements) * block for block in range(blocks)]
    else:
        displacements = _integers(displacements, blocks)
    if min(counts, default=0) < 0 or (any(counts) and not whole.address):
        raise ValueError
    return tuple(
        whole._replace(address=whole.address + displacement * whole.extent, entries=count)
        for count, displacement in zip(counts, displacements, strict=True)
    )


def _integers(values: Any, blocks: int) -> list[int]:
    """One integer for each block, also from one for all."""
    if _is_integer(values):
        return [operator.index(values)] * blocks
    if len(values) != blocks:
        raise ValueError
    return indexed(values)


def indexed(values: Any) -> list[int]:
    """The integers at the indices from 0 on, as mpi4py reads them, from a mapping by rank too.

    Raises:
        TypeError: It has no length or indices, as a generator or a set, or a value is no integer.
        ValueError: It has no value at an index.
    """
    try:
        return [operator.index(values[index]) for index in range(len(values))]
    except LookupError as error:
        raise ValueError from error


def _is_integer(value: object) -> bool:
    return hasattr(value, "__index__") and not (isinstance(value, np.ndarray) and value.ndim)


def _read(
    buffer: Any, count: Any, displacement: Any, datatype: Any, blocks: int, writable: bool
) -> Message:
    if buffer is MPI.IN_PLACE:  # which exports no bytes
        raise ValueError
    owner: object
    if buffer is None or (buffer is MPI.BOTTOM and _begins_at_0(datatype)):
        owner, address, length, code = None, 0, 0, None
    elif buffer is MPI.BOTTOM:
        owner = moved = Moved(datatype)
        address, length, code, datatype = moved.address, 0, None, moved.datatype
    else:
        owner, address, length, readonly, code = _view(buffer)
        if writable and readonly:
            raise BufferError
    type_, extent = _lookup(datatype if datatype is not None else _typecode(code))
    offset = extent * operator.index(0 if displacement is None else displacement)
    has_size = extent > 0 or (count is not None and not type_.size)  # of no bytes: a count says so
    if not has_size or not 0 <= offset <= length:
        raise ValueError
    if count is None:
        entries, rest = divmod(length - offset, extent * blocks)
        if rest:
            raise ValueError
    else:
        entries = operator.index(count)
        if entries < 0 or (entries and not address):
            raise ValueError
    return Message(owner, address + offset, entries, type_, extent)


def _begins_at_0(datatype: Any) -> bool:
    """Whether it has no addresses: a name, or a datatype whose data is at its beginning."""
    return not isinstance(datatype, MPI.Datatype) or datatype.Get_true_extent()[0] <= 0


def _view(buffer: Any) -> Exported:
    try:
        view = memoryview(buffer)
    except TypeError:
        return exported(buffer)
    except ValueError:  # NumPy's dates have no format, and need none beside a datatype
        memory = MPI.buffer(buffer)
        return Exported(memory, memory.address, memory.nbytes, memory.readonly, "")
    if not view.contiguous:
        raise BufferError
    return Exported(view, MPI.Get_address(view), view.nbytes, view.readonly, view.format)


def _typecode(buffer_format: str | None) -> str | MPI.Datatype:
    """mpi4py's name for the format of a buffer's elements (PEP 3118)."""
    if buffer_format == "B":
        return MPI.BYTE
    return (buffer_format or "").removeprefix("@").removeprefix("<")


def _lookup(name: MPI.Datatype | str) -> tuple[MPI.Datatype, int]:
    """A type, from itself or from mpi4py's name for it, and its extent in bytes."""
    return _named(name) if isinstance(name, str) else (name, name.extent)


@functools.cache
def _named(name: str) -> tuple[MPI.Datatype, int]:
    datatype = MPI.Datatype.fromcode(name)
    return datatype, datatype.extent


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
