"""A message in the form of the C core: an address, a code for its type, and a count.

Data with gaps, of types without a code in the core, or at addresses that its reductions do not
support, is packed for the call; received data is unpacked when the call is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm.transports import mpi_lock, type_map
from hbmcomm.transports.message import Bytes, Message
from hbmcomm.transports.native import DTYPES, PAIRS, ffi, lib

PACKED = DTYPES.index("packed")

_SIGNED = (MPI.SIGNED_CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.LONG_LONG)
_UNSIGNED = (
    MPI.UNSIGNED_CHAR,
    MPI.UNSIGNED_SHORT,
    MPI.UNSIGNED,
    MPI.UNSIGNED_LONG,
    MPI.UNSIGNED_LONG_LONG,
)
_OF_FIXED_SIZE = (
    MPI.INT8_T,
    MPI.INT16_T,
    MPI.INT32_T,
    MPI.INT64_T,
    MPI.UINT8_T,
    MPI.UINT16_T,
    MPI.UINT32_T,
    MPI.UINT64_T,
)
_OF_MPI = (MPI.AINT, MPI.OFFSET, MPI.COUNT)
_FLOATING = (MPI.FLOAT, MPI.DOUBLE, MPI.LONG_DOUBLE)
_COMPLEX = (MPI.C_FLOAT_COMPLEX, MPI.C_DOUBLE_COMPLEX, MPI.C_LONG_DOUBLE_COMPLEX)

_OF_ONE_VALUE = (
    *(*_SIGNED, *_UNSIGNED, *_OF_FIXED_SIZE, *_OF_MPI, *_FLOATING, *_COMPLEX),
    MPI.C_BOOL,
)
C_TYPES: dict[int, np.dtype[Any]] = {
    datatype.handle: np.dtype(datatype.typechar) for datatype in _OF_ONE_VALUE
}
"""By MPI's handle."""

Part = tuple[int, int]
"""Offset of a block in bytes from the operand's address, and its length in bytes."""


class Operand(NamedTuple):
    """`entries` per block at `address`.

    Attributes:
        dtype: the core's code.
        parts: of each rank's block, where they differ in length or are not in order.
        packed: the memory, where it was allocated for the call.
        messages: the destinations of received data that is packed: one for each block.
        datatype: of entries that only the program can reduce.
        owner: keeps the memory alive.
    """

    address: int
    dtype: int
    entries: int
    parts: tuple[Part, ...] | None = None
    packed: Bytes | None = None
    messages: tuple[Message, ...] = ()
    datatype: MPI.Datatype | None = None
    owner: object = None

    @property
    def entry_bytes(self) -> int:
        return (
            self.datatype.size if self.datatype is not None else int(lib.hbm_dtype_size(self.dtype))
        )

    def block(self, index: int) -> Operand:
        """One of its blocks, not copied."""
        size = self.entry_bytes
        offset, nbytes = (
            self.parts[index] if self.parts else (index * self.entries * size, self.entries * size)
        )
        return self._replace(
            address=self.address + offset, entries=nbytes // size, parts=None, messages=()
        )

    def copied(self, blocks: int = 1) -> Operand:
        """A copy of the data, for calls that must not read the memory that they write."""
        nbytes = self.entries * blocks * self.entry_bytes
        if self.parts:
            nbytes = max((offset + length for offset, length in self.parts), default=0)
        packed = _aligned(nbytes)
        ffi.memmove(ffi.from_buffer(packed), ffi.cast("char *", self.address), nbytes)
        return self._replace(address=packed.ctypes.data, packed=packed, messages=())

    def unpack(self) -> None:
        """Write received data that is packed to where it belongs, without the core."""
        if self.packed is None:
            return
        at = 0
        for message in self.messages:
            message.store(self.packed[at : at + message.nbytes])
            at += message.nbytes

    def unpackings(self) -> tuple[list[dict[str, Any]], list[object]]:
        """What the core unpacks when the call is complete, and the objects it needs until then."""
        if self.packed is None or not self.messages:
            return [], []
        runs = type_map.runs(self.messages[0].datatype)
        first = min(0, int(runs[:, 0].min(initial=0)))
        parts = ffi.new("hbm_part[]", len(runs))
        ffi.memmove(parts, np.ascontiguousarray(runs - [first, 0]), runs.nbytes)
        unpackings = []
        at = self.address
        for message in filter(lambda destination: destination.nbytes, self.messages):
            unpackings.append(
                {
                    "from": at,
                    "to": message.address + first,
                    "entries": message.entries,
                    "extent": message.extent,
                    "runs": parts,
                    "run_count": len(runs),
                }
            )
            at += message.nbytes
        return unpackings, [parts]


def operand(
    messages: Sequence[Message], given: bool = True, pairs: bool = False, folded: bool = False
) -> Operand:
    """The operand of messages of one type, one for each block.

    Args:
        messages: At least one. For consecutive blocks of one length the first is enough, see
            `blocks`.
        given: Their data is sent; else it is received.
        pairs: They are pairs of a value and its index, as for MAXLOC.
        folded: Its entries must be aligned.
    """
    first = messages[0]
    code = _code(first.datatype)
    whole = code is not None and first.gapless
    if pairs and first.datatype.handle in _PAIRS:
        code, whole = _PAIRS[first.datatype.handle], True
    aligned = not folded or code is None or first.address % int(lib.hbm_alignment(code)) == 0
    if whole and aligned:
        parts = None
        if len(messages) > 1:
            parts = tuple(
                (message.address - first.address, message.entries * message.extent)
                for message in messages
            )
            least = min(parts)[0]
            if least < 0:
                parts = tuple((offset - least, nbytes) for offset, nbytes in parts)
                first = first._replace(address=first.address + least)
        return Operand(first.address, code or 0, first.entries, parts, owner=first.owner)
    return _packed(messages, code, given)


def blocks(
    first: Message, count: int, given: bool = True, pairs: bool = False, folded: bool = False
) -> Operand:
    """The operand of `count` consecutive messages of one length; see `operand`."""
    of_first = operand((first,), given, pairs, folded)
    if of_first.packed is None or count == 1:
        return of_first
    every = tuple(first.part(block) for block in range(count))
    return operand(every, given, pairs, folded)._replace(parts=None)


def foreign(first: Message) -> Operand:
    """The operand of entries that the core moves, and the program reduces."""
    return Operand(first.address, PACKED, first.entries, datatype=first.datatype, owner=first.owner)


def _packed(messages: Iterable[Message], code: int | None, given: bool) -> Operand:
    every = tuple(messages)
    code = PACKED if code is None else code
    size = int(lib.hbm_dtype_size(code))
    lengths = [message.nbytes for message in every]
    packed = _aligned(sum(lengths))
    if given and packed.size:
        np.concatenate([message.load() for message in every], out=packed)
    starts = np.cumsum([0, *lengths])
    parts = tuple((int(start), length) for start, length in zip(starts, lengths, strict=False))
    return Operand(
        packed.ctypes.data,
        code,
        lengths[0] // size,
        parts if len(every) > 1 else None,
        packed,
        every,
        owner=every[0].owner,
    )


def _aligned(nbytes: int) -> Bytes:
    """Memory that is aligned for any entry."""
    room = np.empty(nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + nbytes]


def _code(datatype: MPI.Datatype) -> int | None:
    """The core's code for the predefined type in a datatype; None if there are several."""
    if datatype.is_predefined:
        return _CODES.get(datatype.handle)
    with mpi_lock.made(datatype) as made:
        codes = {_code(base) for base in made.bases}
    return codes.pop() if len(codes) == 1 else None


def _codes() -> dict[int, int]:
    """The core's code by MPI's handle of a datatype of one value."""
    of_numpy = [name for name in DTYPES if name not in ("bfloat16", "packed", *PAIRS)]
    by_dtype = {np.dtype(name): DTYPES.index(name) for name in of_numpy}
    codes = {handle: by_dtype[dtype] for handle, dtype in C_TYPES.items()}
    codes[MPI.BYTE.handle] = DTYPES.index("uint8")
    half = MPI.Datatype.fromcode("e")  # null where the MPI has none
    if half != MPI.DATATYPE_NULL:
        codes[half.handle] = DTYPES.index("float16")
    return codes


_CODES = _codes()
_PAIRS = {getattr(MPI, name).handle: DTYPES.index(name) for name in PAIRS}


@cache
def register() -> bool:
    """Whether the core reads arrays from now on; else Python reads them for every call.

    It does not in implementations of Python with objects that are not C structures.
    """
    lib.hbm_numpy(id(np.ndarray), id(MPI.IN_PLACE))
    if _reads_arrays():
        types = (*_OF_ONE_VALUE, MPI.BYTE)
        codes = [_CODES[mpi_type.handle] for mpi_type in types]
        lib.hbm_datatypes([id(mpi_type) for mpi_type in types], codes, len(types))
        return True
    lib.hbm_numpy(0, 0)
    return False


def _reads_arrays() -> bool:
    """Whether the core reads an array's fields as NumPy means them."""
    address, entries = ffi.new("uintptr_t *"), ffi.new("uint64_t *")
    for array in (np.zeros((3, 5), "float32"), np.zeros(7, "int16")[2:], np.zeros(0, "complex128")):
        code = lib.hbm_read_array(id(array), 1, address, entries)
        if code < 0 or DTYPES[code] != array.dtype.name:
            return False
        if (address[0], entries[0]) != (array.__array_interface__["data"][0], array.size):
            return False
    awkward = (np.zeros((4, 4))[:, 1], np.zeros(3, ">f8"), np.zeros(3, "S4"))
    return all(lib.hbm_read_array(id(array), 1, address, entries) < 0 for array in awkward)
