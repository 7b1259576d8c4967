"""One call of a communicator on several hosts: what is read from its arguments, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hbmcomm.hierarchical.links import Call
from hbmcomm.transports.arguments import Operands
from hbmcomm.transports.call import build_call
from hbmcomm.transports.native import ffi, lib
from hbmcomm.transports.operand import Part

_IN_PLACE = ("Reduce", "Allreduce", "Scan", "Exscan")
_REDUCING = (*_IN_PLACE, "Reduce_scatter_block", "Reduce_scatter")
_BLOCKS = ("Alltoall", "Reduce_scatter_block")
_READ_WHILE_WRITTEN = (*_IN_PLACE, *_BLOCKS, "Alltoallv", "Reduce_scatter")


class Task:
    """A call, with addresses and lengths of this rank's memory.

    Attributes:
        name: Of the call, such as "Allreduce".
        call: `hbm_call *` with ranks and parts of the whole communicator.
        entry: Bytes of one entry; 1 where data is only moved.
        count, root: Of the call; ranks are those of the whole communicator.
        send, recv: Addresses; 0 where this rank does not send or receive.
    """

    def __init__(self, name: str, operands: Operands) -> None:
        built = build_call(name, operands)
        self.name, self.operands = name, operands
        self.call, self._kept, self.packs = built.call, built.kept, built.packs
        is_users = self.call.reduction == lib.HBM_USER
        entry = int(self.call.entry_bytes if is_users else lib.hbm_dtype_size(self.call.dtype))
        self.entry = entry if name in _REDUCING else 1  # ranks may move one message as two types
        self.count = int(self.call.count) * entry // max(self.entry, 1)
        self.root = int(self.call.root)
        self.send, self.recv = int(self.call.send), int(self.call.recv)

    @property
    def nbytes(self) -> int:
        """Bytes of this rank's own block."""
        return self.count * self.entry

    @property
    def described(self) -> Call:
        """What it has in common with the calls of other ranks."""
        return Call.of(self.name, self.nbytes, self.root)

    def sent_parts(self, ranks: int) -> Sequence[Part]:
        """The block for each rank in what this rank sends."""
        sent = self.operands.sent
        return (sent.parts if sent else None) or _equal_parts(ranks, self.nbytes)

    def received_parts(self, ranks: int) -> Sequence[Part]:
        """The block of each rank in what this rank receives."""
        received = self.operands.received
        return (received.parts if received else None) or _equal_parts(ranks, self.nbytes)

    def overlaps(self, ranks: int) -> bool:
        """Whether received data would be written over data that is still to be sent."""
        if self.name not in _READ_WHILE_WRITTEN or not self.send or not self.recv:
            return False
        if self.send == self.recv and self.name in _IN_PLACE:
            return False
        blocks = ranks if self.name in _BLOCKS else 1
        sent = _extent(self.sent_parts(blocks))
        received = _extent(self.received_parts(blocks if self.name == "Alltoall" else 1))
        return self.send < self.recv + received and self.recv < self.send + sent

    def fold(self, count: int, lower: int, higher: int, out: int) -> None:
        """Reduce the entries at two addresses into a third, which may be one of them."""
        call = ffi.new("hbm_call *", self.call[0])
        call.count = count
        ins = ffi.new("const void *[2]", [ffi.cast("void *", each) for each in (lower, higher)])
        status = lib.hbm_fold(call, ins, 2, ffi.cast("void *", out))
        if status:
            raise MemoryError("a reduction between hosts has no memory, or was interrupted")

    def unpack(self) -> None:
        """Write received data that came packed to where it belongs."""
        received = self.operands.received
        if received is not None:
            received.unpack()


def _equal_parts(ranks: int, nbytes: int) -> list[Any]:
    return [(rank * nbytes, nbytes) for rank in range(ranks)]


def _extent(parts: Sequence[Part]) -> int:
    """Bytes from an address to the end of its last block."""
    return max(offset + nbytes for offset, nbytes in parts)


def move(to: int, source: int, nbytes: int) -> None:
    """Copy memory; the two ranges may overlap."""
    ffi.memmove(ffi.cast("char *", to), ffi.cast("char *", source), nbytes)
