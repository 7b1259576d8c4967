"""A message as the C core wants it: an address, a code for its type, and a count.

Data with gaps, or of types that the core has no code for, is packed for the call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm.collectives.core import DTYPES, ffi, lib
from hbmcomm.collectives.message import Bytes, Message

PACKED = DTYPES.index("packed")


class Operand(NamedTuple):
    """`entries` per block at `address`; `packed` is that memory where it was made for the
    call, and `messages` is where what it receives belongs."""

    address: int
    dtype: int
    entries: int
    messages: tuple[Message, ...]
    packed: Bytes | None

    def block(self, index: int) -> Operand | None:
        """One of its blocks, where it lies; None where it is packed."""
        if self.packed is not None:
            return None
        nbytes = self.entries * int(lib.hbm_dtype_size(self.dtype))
        return self._replace(address=self.address + index * nbytes, messages=())

    def finish(self) -> None:
        """Unpack what was received into the memory that it is meant for."""
        if self.packed is not None and self.messages:
            for data, message in zip(
                np.split(self.packed, len(self.messages)), self.messages, strict=True
            ):
                message.store(data)


def operand(first: Message, blocks: int = 1, given: bool = True) -> Operand:
    """The operand of `blocks` messages that lie behind each other.

    Args:
        first: The first of them.
        blocks: How many there are.
        given: Their data is sent; else the room for it is meant.
    """
    code = _code(first.datatype)
    if first.gapless and code is not None:
        return Operand(first.address, code, first.entries, (first,), None)
    messages = tuple(first.part(block) for block in range(blocks))
    packed = np.empty(first.nbytes * blocks, np.uint8)
    if given and packed.size:
        np.concatenate([message.load() for message in messages], out=packed)
    if code is None:
        code = PACKED
    entries = first.nbytes // int(lib.hbm_dtype_size(code))
    return Operand(packed.ctypes.data, code, entries, messages, packed)


def copied(operand: Operand, blocks: int) -> Operand:
    """The same data elsewhere, for calls in place that must not read what they write."""
    nbytes = operand.entries * blocks * int(lib.hbm_dtype_size(operand.dtype))
    packed = np.empty(nbytes, np.uint8)
    ffi.memmove(ffi.from_buffer(packed), ffi.cast("char *", operand.address), nbytes)
    return Operand(packed.ctypes.data, operand.dtype, operand.entries, (), packed)


def _code(datatype: MPI.Datatype) -> int | None:
    """The core's code for the one predefined type that a datatype consists of, if it is one."""
    if datatype.is_predefined:
        return _CODES.get(datatype.handle)
    base, _, _ = datatype.decode()
    bases = [base] if isinstance(base, MPI.Datatype) else list(base)
    codes = {_code(each) for each in bases}
    return codes.pop() if len(codes) == 1 else None


def _codes() -> dict[int, int]:
    integers = (
        *(MPI.SIGNED_CHAR, MPI.SHORT, MPI.INT, MPI.LONG, MPI.LONG_LONG),
        *(MPI.UNSIGNED_CHAR, MPI.UNSIGNED_SHORT, MPI.UNSIGNED, MPI.UNSIGNED_LONG),
        *(MPI.UNSIGNED_LONG_LONG, MPI.AINT, MPI.OFFSET, MPI.COUNT),
        *(MPI.INT8_T, MPI.INT16_T, MPI.INT32_T, MPI.INT64_T),
        *(MPI.UINT8_T, MPI.UINT16_T, MPI.UINT32_T, MPI.UINT64_T),
    )
    others = (
        *((MPI.BYTE, "uint8"), (MPI.FLOAT, "float32"), (MPI.DOUBLE, "float64")),
        *((MPI.LONG_DOUBLE, "longdouble"), (MPI.C_BOOL, "bool")),
        *((MPI.C_FLOAT_COMPLEX, "complex64"), (MPI.C_DOUBLE_COMPLEX, "complex128")),
        (MPI.C_LONG_DOUBLE_COMPLEX, "clongdouble"),
    )
    half = MPI.Datatype.fromcode("e")  # null where the MPI has none
    names = [(each, np.dtype(each.typechar).name) for each in integers]
    names += [(half, "float16")] if half != MPI.DATATYPE_NULL else []
    return {datatype.handle: DTYPES.index(name) for datatype, name in (*names, *others)}


_CODES = _codes()
