"""Reads the arguments of each collective, in any of mpi4py's buffer forms, as operands of the core.

`READ` has one function for each call, with the arguments of mpi4py's call; it uses only the size
and rank of `comm`. Raises `Unreadable` where mpi4py must check the arguments, and `Unserved` where
the core cannot do the call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm.transports import mpi_lock
from hbmcomm.transports.message import (
    Message,
    Moved,
    Unreadable,
    in_place,
    indexed,
    read,
    read_each,
)
from hbmcomm.transports.native import REDUCTIONS, SHAPES, lib
from hbmcomm.transports.operand import Operand, blocks, foreign, operand


class Unserved(Exception):
    """MPI must do this call; all ranks get the same result."""


class Unequal(Unserved):
    """This rank's own two lengths differ: a mistake of which ranks in the core must hear."""


class Operands(NamedTuple):
    """What a rank sends and where it receives; None where it does not.

    Attributes:
        reduction: the core's number of `op`.
    """

    sent: Operand | None = None
    received: Operand | None = None
    root: int = 0
    reduction: int = 0
    op: MPI.Op | None = None


def barrier(_comm: MPI.Comm) -> Operands:
    return Operands()


def bcast(comm: MPI.Comm, buf: Any, root: int = 0) -> Operands:
    root = _root(comm, root)
    at_root = root == comm.rank
    both = _read(buf, writable=not at_root, given=at_root)
    return Operands(both, both._replace(messages=()) if at_root else both, root)


def moving(name: str) -> Callable[..., Operands]:
    """The function for a call that moves blocks of ranks."""
    shape = SHAPES[name]

    def read_call(comm: MPI.Comm, sendbuf: Any, recvbuf: Any, root: int = 0) -> Operands:
        root = _root(comm, root)
        at_root = root == comm.rank
        if shape.to_root and not at_root:
            return Operands(_read(sendbuf), None, root)
        if shape.from_root and not at_root:
            return Operands(None, _read(recvbuf, writable=True, given=False), root)
        if shape.receives_each:
            received = _each(shape, comm, recvbuf, writable=True, given=False)
            if in_place(sendbuf):
                return Operands(_in_place(shape, comm, recvbuf, received), received, root)
        sent = _each(shape, comm, sendbuf) if shape.sends_each else _read(sendbuf)
        if not shape.receives_each:
            if in_place(recvbuf):
                return Operands(sent, sent.block(root), root)
            received = _read(recvbuf, writable=True, given=False)
        return _equally_long(Operands(sent, received, root), comm.rank)

    return read_call


def _each(
    shape: Any, comm: MPI.Comm, spec: Any, writable: bool = False, given: bool = True
) -> Operand:
    """A buffer with a block for each rank."""
    if shape.lengths == lib.HBM_EQUAL:
        return _read(spec, comm.size, writable, given)
    return operand(read_each(spec, comm.size, writable), given)


def _in_place(shape: Any, comm: MPI.Comm, recvbuf: Any, received: Operand) -> Operand:
    """What this rank sends from the buffer in which it receives."""
    is_equal = shape.lengths == lib.HBM_EQUAL
    if shape.sends_each:
        return _each(shape, comm, recvbuf).copied(comm.size if is_equal else 1)
    if received.packed is None:
        return received.block(comm.rank)
    if is_equal:
        return operand([_message(recvbuf, comm.size).part(comm.rank)])
    return operand([read_each(recvbuf, comm.size)[comm.rank]])


def reduce(
    comm: MPI.Comm, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM, root: int = 0
) -> Operands:
    root = _root(comm, root)
    if root == comm.rank:
        return allreduce(comm, sendbuf, recvbuf, op)._replace(root=root)
    return Operands(_folded(sendbuf, op), None, root, _number(op), op)


def allreduce(_comm: MPI.Comm, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> Operands:
    taken = _folded(recvbuf, op, writable=True)
    given = taken if in_place(sendbuf) else _folded(sendbuf, op)
    return _alike(Operands(given, taken, reduction=_number(op), op=op))


def reduce_scatter_block(
    comm: MPI.Comm, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM
) -> Operands:
    if in_place(sendbuf):
        taken = _folded(recvbuf, op, comm.size, writable=True)
        return Operands(taken.copied(comm.size), taken, reduction=_number(op), op=op)
    taken, given = _folded(recvbuf, op, writable=True), _folded(sendbuf, op, comm.size)
    return _alike(Operands(given, taken, reduction=_number(op), op=op))


def reduce_scatter(
    comm: MPI.Comm, sendbuf: Any, recvbuf: Any, recvcounts: Any = None, op: MPI.Op = MPI.SUM
) -> Operands:
    if recvcounts is None:
        raise Unserved  # mpi4py asks the other ranks for theirs
    try:
        counts = indexed(recvcounts)
    except (TypeError, ValueError) as error:
        raise Unreadable from error
    if len(counts) != comm.size or min(counts) < 0:
        raise Unreadable
    taken = _folded(recvbuf, op, writable=True)
    given = taken.copied() if in_place(sendbuf) else _folded(sendbuf, op)
    own = sum(counts) if in_place(sendbuf) else counts[comm.rank]
    if (given.entries, taken.entries) != (sum(counts), own) or not _of_one_type(given, taken):
        raise Unreadable
    size = given.entry_bytes
    parts = tuple((sum(counts[:r]) * size, count * size) for r, count in enumerate(counts))
    taken = taken._replace(entries=counts[comm.rank])
    return Operands(given._replace(parts=parts), taken, reduction=_number(op), op=op)


def _has_blocks(shape: Any) -> bool:
    return bool((shape.sends_each or shape.receives_each) and not shape.reduces)


READ: dict[str, Callable[..., Operands]] = {
    "Barrier": barrier,
    "Bcast": bcast,
    **{name: moving(name) for name, shape in SHAPES.items() if _has_blocks(shape)},
    "Reduce": reduce,
    "Allreduce": allreduce,
    "Reduce_scatter_block": reduce_scatter_block,
    "Reduce_scatter": reduce_scatter,
    "Scan": allreduce,
    "Exscan": allreduce,
}


def _number(op: MPI.Op) -> int:
    """The core's number of a reduction.

    Raises:
        Unserved: It is not commutative.
    """
    op_number = _NUMBERS.get(getattr(op, "handle", 0))
    if op_number is not None:
        return op_number
    if not isinstance(op, MPI.Op) or op.is_predefined or not mpi_lock.is_commutative(op):
        raise Unserved
    return int(lib.HBM_USER)


def _folded(spec: Any, op: MPI.Op, count: int = 1, writable: bool = False) -> Operand:
    """An operand of a reduction.

    Raises:
        Unserved: The core does not have this reduction for data of this type.
        Unreadable: See there; also for absolute addresses (MPI.BOTTOM).
    """
    number, message = _number(op), _message(spec, count, writable)
    if isinstance(message.owner, Moved):
        raise Unreadable  # functions of the program would get another datatype than theirs
    if number == lib.HBM_USER:
        if message.extent != message.datatype.size:
            raise Unserved
        return foreign(message)
    pairs = REDUCTIONS[number] in ("MAXLOC", "MINLOC")
    folded = _of_half(spec, blocks(message, count, folded=True, pairs=pairs))
    if not message.datatype.is_predefined or not lib.hbm_reduces(folded.dtype, number):
        raise Unserved
    return folded


# ---- buffers ----


def _read(spec: Any, count: int = 1, writable: bool = False, given: bool = True) -> Operand:
    """An operand from a specification; `given`: its data is sent, and packed where needed."""
    return _of_half(spec, blocks(_message(spec, count, writable), count, given))


def _message(spec: Any, count: int, writable: bool = False) -> Message:
    return read(spec.view(np.uint16) if _is_half(spec) else spec, count, writable)


def _alike(operands: Operands) -> Operands:
    """The operands of a reduction, if they have the same type and length.

    Raises:
        Unreadable: They differ; mpi4py refuses that.
    """
    sent, received = operands.sent, operands.received
    assert sent and received
    if sent.entries != received.entries or not _of_one_type(sent, received):
        raise Unreadable
    return operands


def _of_one_type(sent: Operand, received: Operand) -> bool:
    """Whether both sides of a reduction have the same type, also where only MPI knows it."""
    return (sent.dtype, sent.datatype) == (received.dtype, received.datatype)


def _equally_long(operands: Operands, rank: int) -> Operands:
    """The operands of a call that moves data, if its own two blocks of a rank have as many bytes.

    Raises:
        Unequal: They differ; mpi4py does not mind.
    """
    sent, received = operands.sent, operands.received
    assert sent and received
    if _own_bytes(sent, rank) != _own_bytes(received, rank):
        raise Unequal
    return operands


def _own_bytes(side: Operand, rank: int) -> int:
    return side.parts[rank][1] if side.parts else side.entries * side.entry_bytes


def _of_half(spec: Any, side: Operand) -> Operand:
    return side._replace(dtype=_HALVES[spec.dtype.name]) if _is_half(spec) else side


def _is_half(spec: Any) -> bool:
    """Whether it is an array of a type without a name in the buffer protocol or some MPIs."""
    if not isinstance(spec, np.ndarray) or spec.dtype.itemsize != 2:  # a name takes a while
        return False
    return spec.dtype.name in _HALVES and spec.dtype.isnative


def _root(comm: MPI.Comm, root: Any) -> int:
    """A rank of the communicator, from all that mpi4py takes for one: 0.0 as well."""
    number: int = root.__int__() if hasattr(root, "__int__") else operator.index(root)
    if not 0 <= number < comm.size:
        raise Unreadable
    return number


_NUMBERS = {getattr(MPI, name).handle: number for number, name in enumerate(REDUCTIONS)}
_HALVES = {"float16": lib.HBM_FLOAT16, "bfloat16": lib.HBM_BFLOAT16}
