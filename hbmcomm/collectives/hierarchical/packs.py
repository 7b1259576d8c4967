"""The blocks of several ranks as one message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hbmcomm.collectives.buffers.message import Bytes
from hbmcomm.collectives.buffers.operand import Part
from hbmcomm.collectives.hierarchical.task import move
from hbmcomm.collectives.hierarchical.ways import scratch


class Pack:
    """The blocks of some ranks: where they are in memory, and packed where they have gaps."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.nbytes = sum(nbytes for _, nbytes in self._parts)
        self.begin = next((offset for offset, nbytes in self._parts if nbytes), 0)
        end = self.begin
        self.packed: Bytes | None = None
        for offset, nbytes in self._parts:
            if nbytes and offset != end:
                self.packed = scratch(self.nbytes)
            end += nbytes

    def address_in(self, memory: int) -> int:
        """Where the message is."""
        return memory + self.begin if self.packed is None else self.packed.ctypes.data

    def pack(self, memory: int) -> None:
        """Copy the blocks from memory into the message."""
        for at, address, nbytes in self._copies(memory):
            move(at, address, nbytes)

    def unpack(self, memory: int) -> None:
        """Copy the blocks from the message to memory."""
        for at, address, nbytes in self._copies(memory):
            move(address, at, nbytes)

    def _copies(self, memory: int) -> Iterable[tuple[int, int, int]]:
        if self.packed is None:
            return
        at = self.packed.ctypes.data
        for offset, nbytes in self._parts:
            yield at, memory + offset, nbytes
            at += nbytes
