"""One normal form for every way in which mpi4py takes the buffer of one message.

Follows mpi4py's own reading: a buffer, or [buffer, type], [buffer, count], [buffer, count, type],
[buffer, (count, displacement), type], [buffer, count, displacement, type], tuples alike. Moves
bytes between such memory and plain arrays; knows no collective and raises no error of its own
about a buffer, because mpi4py says it better.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


class Unreadable(Exception):
    """mpi4py refuses this buffer, or it alone can read it: hand the whole call to it."""


@dataclass(frozen=True)
class Message:
    """`count` entries of `datatype` from `address` on; `owner` keeps that memory alive."""

    owner: object
    address: int
    count: int
    datatype: MPI.Datatype
    extent: int
    """Bytes from one entry to the next."""

    @property
    def nbytes(self) -> int:
        """Bytes of data, gaps not counted."""
        return self.count * self.datatype.size

    def part(self, index: int) -> Message:
        """The message of the same length that lies `index` such lengths further on."""
        return replace(self, address=self.address + index * self.count * self.extent)

    def load(self) -> Bytes:
        """Its data without gaps: a view where there are none, else a copy."""
        memory = self._memory()
        if self._gapless:
            return memory
        packed = np.empty(self.datatype.Pack_size(self.count, MPI.COMM_SELF), np.uint8)
        end = self.datatype.Pack(memory, packed, 0, MPI.COMM_SELF) if self.count else 0
        return packed[:end]

    def store(self, data: Bytes) -> None:
        """Put what load() gave elsewhere into this memory.

        Raises:
            MPI.Exception: ERR_TRUNCATE, it is not as long as this message.
        """
        if data.nbytes != self.nbytes:
            raise MPI.Exception(MPI.ERR_TRUNCATE)
        if self._gapless:
            self._memory()[:] = data
        elif self.count:
            self.datatype.Unpack(data, 0, self._memory(), MPI.COMM_SELF)

    @property
    def _gapless(self) -> bool:
        return self.datatype.is_predefined and self.datatype.size == self.extent

    def _memory(self) -> Bytes:
        nbytes = self.count * self.extent
        if not nbytes:
            return np.empty(0, np.uint8)
        memory: Any = MPI.buffer.fromaddress(self.address, nbytes)
        return np.frombuffer(memory, np.uint8)


def read(spec: Any, blocks: int = 1, writable: bool = False) -> Message:
    """The message that mpi4py reads from a buffer specification.

    Args:
        spec: Any of the forms above.
        blocks: A whole buffer without a count holds that many messages; the first is returned.
        writable: The memory will be written.

    Raises:
        Unreadable: Also for absolute addresses (MPI.BOTTOM), which mpi4py alone can read.
    """
    try:
        return _read(*_items(spec), blocks, writable)
    except (TypeError, ValueError, BufferError, AttributeError, MPI.Exception) as error:
        raise Unreadable from error


def _items(spec: Any) -> tuple[Any, Any, Any, Any]:
    """Buffer, count, displacement and type, None where left out."""
    if not isinstance(spec, list | tuple):
        return spec, None, None, None
    if len(spec) == 4:
        return spec[0], spec[1], spec[2], spec[3]
    if len(spec) == 2 and isinstance(spec[1], MPI.Datatype | str):
        return spec[0], None, None, spec[1]
    buffer, count, *rest = spec
    (datatype,) = rest or [None]
    count, displacement = count if isinstance(count, list | tuple) else (count, None)
    return buffer, count, displacement, datatype


def _read(
    buffer: Any, count: Any, displacement: Any, datatype: Any, blocks: int, writable: bool
) -> Message:
    if buffer is None or buffer is MPI.BOTTOM:
        address, length, code = 0, 0, None
    else:
        view = _view(buffer)
        if not view.contiguous or (writable and view.readonly):
            raise BufferError
        array = np.asarray(view)
        address, length, code = array.__array_interface__["data"][0], array.nbytes, view.format
    found = datatype if isinstance(datatype, MPI.Datatype) else _lookup(datatype, code)
    extent = found.extent
    offset = extent * operator.index(0 if displacement is None else displacement)
    if extent <= 0 or not 0 <= offset <= length:
        raise ValueError
    if count is None:
        entries, rest = divmod(length - offset, extent * blocks)
        if rest:
            raise ValueError
    else:
        entries = operator.index(count)
        if entries < 0 or (entries and not address):
            raise ValueError
    return Message(buffer, address + offset, entries, found, extent)


def _view(buffer: Any) -> memoryview:
    try:
        return memoryview(buffer)
    except TypeError:
        array: Any = np.from_dlpack(buffer)
        return memoryview(array)


def _lookup(typecode: str | None, buffer_format: str | None) -> MPI.Datatype:
    """A type by mpi4py's name for it, or by the format of a buffer (PEP 3118)."""
    if typecode is None:
        if buffer_format == "B":
            return MPI.BYTE
        typecode = (buffer_format or "").removeprefix("@").removeprefix("<")
    return MPI.Datatype.fromcode(typecode)
