"""Transport `pickle`: collectives of buffers through mpi4py's lower-case, pickling calls.

This is the cost of programs that pass objects instead of buffers; it serves as a comparison. Calls
without a lower-case form, and those where pickles cannot do the same as MPI (user-defined
operations, pair and derived types in reductions), stay mpi4py's, and so do errors about bad
arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, InPlace
from numpy.typing import NDArray

from hbmcomm.transports.message import Message, Unreadable, in_place, read
from hbmcomm.transports.operand import C_TYPES
from hbmcomm.transports.transport import Transport

Array = NDArray[Any]

OPERATIONS: dict[int, tuple[np.ufunc, str]] = {
    MPI.SUM.handle: (np.add, "iufc"),
    MPI.PROD.handle: (np.multiply, "iufc"),
    MPI.MAX.handle: (np.maximum, "iuf"),
    MPI.MIN.handle: (np.minimum, "iuf"),
    MPI.LAND.handle: (np.logical_and, "iub"),
    MPI.LOR.handle: (np.logical_or, "iub"),
    MPI.LXOR.handle: (np.logical_xor, "iub"),
    MPI.BAND.handle: (np.bitwise_and, "iu"),
    MPI.BOR.handle: (np.bitwise_or, "iu"),
    MPI.BXOR.handle: (np.bitwise_xor, "iu"),
}
"""By MPI's operation: NumPy's function, and the kinds of dtype for which MPI defines it."""


class Pickles(Transport):
    """The collectives that pickles can carry; arguments, results and errors as in mpi4py."""

    def Bcast(self, buf: BufSpec, root: int = 0) -> None:
        at_root = self.rank == root
        try:
            own = read(buf, writable=not at_root)
        except Unreadable:
            return super().Bcast(buf, root)
        data = self.bcast(own.load() if at_root else None, root)
        return None if at_root else own.store(data)

    def Gather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> None:
        try:
            taken = read(recvbuf, self.size, writable=True) if self.rank == root else None
            given = self._own_part(sendbuf, taken)
        except Unreadable:
            return super().Gather(sendbuf, recvbuf, root)
        return _store_each(taken, self.gather(given.load(), root))

    def Allgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> None:
        try:
            taken = read(recvbuf, self.size, writable=True)
            given = self._own_part(sendbuf, taken)
        except Unreadable:
            return super().Allgather(sendbuf, recvbuf)
        return _store_each(taken, self.allgather(given.load()))

    def Scatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        at_root = self.rank == root
        stays = at_root and in_place(recvbuf)
        try:
            given = read(sendbuf, self.size) if at_root else None
            taken = None if stays else read(recvbuf, writable=True)
        except Unreadable:
            return super().Scatter(sendbuf, recvbuf, root)
        data = self.scatter(self._load_each(given) if given else None, root)
        return taken.store(data) if taken else None

    def Alltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> None:
        try:
            taken = read(recvbuf, self.size, writable=True)
            given = taken if in_place(sendbuf) else read(sendbuf, self.size)
        except Unreadable:
            return super().Alltoall(sendbuf, recvbuf)
        return _store_each(taken, self.alltoall(self._load_each(given)))

    def Reduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
    ) -> None:
        try:
            taken = read(recvbuf, writable=True) if self.rank == root else None
            own, combine = _operands(sendbuf, taken, op)
        except Unreadable:
            return super().Reduce(sendbuf, recvbuf, op, root)
        result: Any = self.reduce(own, combine, root)
        return taken.store(result.view(np.uint8)) if taken else None

    def Allreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM) -> None:
        try:
            taken = read(recvbuf, writable=True)
            own, combine = _operands(sendbuf, taken, op)
        except Unreadable:
            return super().Allreduce(sendbuf, recvbuf, op)
        return taken.store(self.allreduce(own, combine).view(np.uint8))

    def _own_part(self, sendbuf: BufSpec | InPlace, taken: Message | None) -> Message:
        """This rank's contribution; in place, it is at its final position."""
        return taken.part(self.rank) if taken and in_place(sendbuf) else read(sendbuf)

    def _load_each(self, given: Message) -> list[Array]:
        return [given.part(rank).load() for rank in range(self.size)]


def _store_each(taken: Message | None, messages: list[Array] | None) -> None:
    """Store the messages of all ranks in their order."""
    if taken and messages is not None:
        for rank, data in enumerate(messages):
            taken.part(rank).store(data)


def _operands(
    sendbuf: BufSpec | InPlace, taken: Message | None, op: MPI.Op
) -> tuple[Array, Callable[[Array, Array], Array]]:
    """This rank's operand, and the reduction of two operands.

    All ranks decide the same, since MPI requires the same operation and type of all of them.

    Raises:
        Unreadable: MPI itself must reduce this, or refuse it.
    """
    given = taken if taken and in_place(sendbuf) else read(sendbuf)
    if taken and (taken.datatype, taken.entries) != (given.datatype, given.entries):
        raise Unreadable
    ufunc, kinds = OPERATIONS.get(getattr(op, "handle", 0), (None, ""))
    dtype = C_TYPES.get(given.datatype.handle)
    if ufunc is None or dtype is None or dtype.kind not in kinds:
        raise Unreadable

    def combine(lower: Array, higher: Array) -> Array:
        result: Array = ufunc(lower, higher).astype(dtype, copy=False)
        return result

    return given.load().view(dtype), combine
