"""Transport `pickle`: collectives of buffers through mpi4py's lower-case, pickling calls.

What Python programs pay that pass objects instead of buffers; kept to be compared with. Takes the
arguments of the upper-case calls. Reductions that pickles cannot carry (user-defined operations,
pair and derived types) go to mpi4py's buffer calls unchanged, as do arguments that mpi4py refuses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

SELF_TAG = 0x6862  # of messages that a rank sends itself to have them packed

REDUCTIONS: dict[int, tuple[np.ufunc, str]] = {
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
"""By handle (an MPI.Op is not hashable): the same on whole arrays, and the dtype kinds that MPI
defines it for."""


class Pickled(MPI.Intracomm):
    """The collectives that pickles can carry; arguments and results as in mpi4py.

    Every buffer is looked at before anything is sent, so that one that mpi4py refuses is an error
    on its rank at once and not a wait on the others.
    """

    def Bcast(self, buf: Any, root: int = 0) -> None:
        own = _load(buf)
        message = self.bcast(own if self.rank == root else None, root)
        if self.rank != root:
            _store(buf, message)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        if self.rank == root:
            _load(_whole(recvbuf, self.size))
        messages = self.gather(_own_block(self, sendbuf, recvbuf), root)
        if messages is not None:
            _store_blocks(recvbuf, messages)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        _load(_whole(recvbuf, self.size))
        _store_blocks(recvbuf, self.allgather(_own_block(self, sendbuf, recvbuf)))

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        blocks = _blocks(sendbuf, self.size) if self.rank == root else None
        if recvbuf is not MPI.IN_PLACE:
            _load(recvbuf)
        message = self.scatter(blocks, root)
        if recvbuf is not MPI.IN_PLACE:
            _store(recvbuf, message)

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        _load(_whole(recvbuf, self.size))
        given = recvbuf if sendbuf is MPI.IN_PLACE else sendbuf
        _store_blocks(recvbuf, self.alltoall(_blocks(given, self.size)))

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0) -> None:
        own = _elements(recvbuf if sendbuf is MPI.IN_PLACE else sendbuf)
        combine = _combine(own, op)
        if own is None or combine is None:
            super().Reduce(sendbuf, recvbuf, op, root)
            return
        result = self.reduce(own, combine, root)
        if result is not None:
            _store(recvbuf, _as_bytes(result))

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        own = _elements(recvbuf if sendbuf is MPI.IN_PLACE else sendbuf)
        combine = _combine(own, op)
        if own is None or combine is None:
            super().Allreduce(sendbuf, recvbuf, op)
            return
        _store(recvbuf, _as_bytes(self.allreduce(own, combine)))

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        own = _elements(_whole(recvbuf if sendbuf is MPI.IN_PLACE else sendbuf, self.size))
        combine = _combine(own, op)
        if own is None or combine is None or own.size % self.size:
            super().Reduce_scatter_block(sendbuf, recvbuf, op)
            return
        _store(recvbuf, _as_bytes(self._own_part(self.allreduce(own, combine))))

    def _own_part(self, whole: NDArray[Any]) -> NDArray[Any]:
        part: NDArray[Any] = whole.reshape(self.size, -1)[self.rank]
        return part


def _combine(own: NDArray[Any] | None, op: MPI.Op) -> Any:
    """The reduction of two arrays, in rank order; None where MPI itself must do it."""
    ufunc, kinds = REDUCTIONS.get(op.handle, (None, ""))
    if ufunc is None or own is None or own.dtype.kind not in kinds:
        return None
    dtype = own.dtype
    return lambda a, b: ufunc(a, b).astype(dtype, copy=False)


def _elements(spec: Any) -> NDArray[Any] | None:
    """A flat view of a message of one predefined type; None for any other form.

    Args:
        spec: An array or buffer, [buffer, type], [buffer, count] or [buffer, count, type].
    """
    parts = spec if isinstance(spec, list | tuple) else (spec,)
    count: int | None = None
    datatype: MPI.Datatype | None = None
    for part in parts[1:]:
        if isinstance(part, int):
            count = part
        elif isinstance(part, MPI.Datatype) and part.is_predefined:
            datatype = part
        else:
            return None
    try:
        view = memoryview(parts[0])
        if not view.c_contiguous:
            return None
        flat = np.asarray(view).reshape(-1)
        if datatype is not None:
            flat = flat.view(np.uint8).view(datatype.typestr)
    except (TypeError, ValueError, BufferError):
        return None
    if count is not None and count > flat.size:
        return None
    return flat[:count]


def _whole(spec: Any, ranks: int) -> Any:
    """The one message that a buffer of a block per rank is: mpi4py counts the elements of one."""
    if not isinstance(spec, list | tuple):
        return spec
    match spec:
        case [buffer, int(count), *rest]:
            return [buffer, count * ranks, *rest]
        case [buffer, [count, displacement], *rest]:
            return [buffer, (count * ranks, displacement), *rest]
        case _:
            return spec


def _as_bytes(array: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(array).view(np.uint8)


def _load(spec: Any) -> Bytes:
    """The bytes of a message in any form; mpi4py itself packs all but the plain ones."""
    own = _elements(spec)
    if own is not None:
        return _as_bytes(own)
    status = MPI.Status()
    sending = MPI.COMM_SELF.Isend(spec, 0, SELF_TAG)
    MPI.COMM_SELF.Probe(0, SELF_TAG, status)
    packed = np.empty(status.Get_count(MPI.BYTE), np.uint8)
    MPI.COMM_SELF.Recv([packed, MPI.PACKED], 0, SELF_TAG)
    sending.Wait()
    return packed


def _store(spec: Any, message: Bytes) -> None:
    """Put a message into a buffer of any form.

    Raises:
        MPI.Exception: ERR_TRUNCATE, the buffer is shorter than the message.
    """
    own = _elements(spec)
    if own is None:
        MPI.COMM_SELF.Sendrecv([message, MPI.PACKED], 0, SELF_TAG, spec, 0, SELF_TAG)
        return
    room = _as_bytes(own)
    if message.size > room.size:
        raise MPI.Exception(MPI.ERR_TRUNCATE)
    room[: message.size] = message


def _blocks(spec: Any, ranks: int) -> list[Bytes]:
    """A message cut into one block per rank."""
    return np.split(_load(_whole(spec, ranks)), ranks)


def _store_blocks(spec: Any, messages: list[Bytes]) -> None:
    """Put one message per rank, all of the same length, behind each other into a buffer."""
    _store(_whole(spec, len(messages)), np.concatenate(messages))


def _own_block(comm: MPI.Intracomm, sendbuf: Any, recvbuf: Any) -> Bytes:
    """What this rank contributes; with IN_PLACE it is where it will end up."""
    if sendbuf is MPI.IN_PLACE:
        return _blocks(recvbuf, comm.size)[comm.rank]
    return _load(sendbuf)
