"""What each collective is given, in any of mpi4py's buffer forms, as operands of the C core.

One function per call; `comm` is asked for its size and rank alone. Raises `Unreadable` where mpi4py
must judge the arguments, and `Unserved` where the core cannot do what they ask for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, InPlace

from hbmcomm.collectives.core import REDUCTIONS, lib
from hbmcomm.collectives.message import Message, Unreadable, read
from hbmcomm.collectives.operand import Operand, copied, operand

Operands = tuple[Operand | None, Operand | None]
"""What a rank sends and where it receives; None where it does not."""

_CODES = {getattr(MPI, name).handle: code for code, name in enumerate(REDUCTIONS)}
_HALVES = {"float16": lib.HBM_FLOAT16, "bfloat16": lib.HBM_BFLOAT16}


class Unserved(Exception):
    """MPI must do this call; all ranks find so alike."""


def bcast(comm: MPI.Comm, buf: BufSpec, root: int) -> Operands:
    at_root = root == comm.rank
    both = _read(buf, writable=not at_root, given=at_root)
    return both, both._replace(messages=()) if at_root else both


def gather(
    comm: MPI.Comm, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int
) -> Operands:
    if root != comm.rank:
        return _read(sendbuf), None
    return allgather(comm, sendbuf, recvbuf)


def allgather(comm: MPI.Comm, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None) -> Operands:
    taken = _read(recvbuf, comm.size, writable=True, given=False)
    if not _in_place(sendbuf):
        return _read(sendbuf), taken
    own = taken.block(comm.rank)
    return own or operand(_message(recvbuf, comm.size).part(comm.rank)), taken


def scatter(
    comm: MPI.Comm, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int
) -> Operands:
    if root != comm.rank:
        return None, _read(recvbuf, writable=True, given=False)
    send = _read(sendbuf, comm.size)
    if not _in_place(recvbuf):
        return send, _read(recvbuf, writable=True, given=False)
    return send, send.block(root) or copied(send, comm.size)


def alltoall(comm: MPI.Comm, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> Operands:
    taken = _read(recvbuf, comm.size, writable=True, given=False)
    if not _in_place(sendbuf):
        return _read(sendbuf, comm.size), taken
    send = _read(recvbuf, comm.size)
    return copied(send, comm.size) if send.packed is None else send, taken


def reduction(sendbuf: BufSpec | InPlace, recvbuf: BufSpec | None, op: MPI.Op) -> Operands:
    """`recvbuf` is None on a rank that receives nothing."""
    taken = _read(recvbuf, writable=True) if recvbuf is not None else None
    given = taken if taken and _in_place(sendbuf) else _read(sendbuf)
    if taken and (taken.entries, taken.dtype) != (given.entries, given.dtype):
        raise Unreadable
    return _reducible(given, op), taken


def reduce_scatter(
    comm: MPI.Comm,
    sendbuf: BufSpecB | InPlace,
    recvbuf: BufSpec | BufSpecB,
    op: MPI.Op,
) -> Operands:
    if _in_place(sendbuf):
        taken = _read(recvbuf, comm.size, writable=True)
        return copied(_reducible(taken, op), comm.size), taken
    taken = _read(recvbuf, writable=True)
    given = _read(sendbuf, comm.size)
    if (taken.entries, taken.dtype) != (given.entries, given.dtype):
        raise Unreadable
    return _reducible(given, op), taken


def reduction_code(op: MPI.Op | None) -> int:
    """The core's number of a predefined reduction; 0 for any other, and for none."""
    return 0 if op is None else _CODES.get(op.handle, 0)


def _reducible(given: Operand, op: MPI.Op) -> Operand:
    """Raises Unserved unless the core has this reduction for data of this type, without gaps."""
    code = _CODES.get(getattr(op, "handle", 0), -1)
    if given.packed is not None or not lib.hbm_reduces(given.dtype, code):
        raise Unserved
    return given


def _read(spec: Any, blocks: int = 1, writable: bool = False, given: bool = True) -> Operand:
    """An operand from a specification; what is received only is not packed (`given` is False)."""
    message = _message(spec, blocks, writable)
    if message.nbytes * blocks >= 2**63:
        raise Unreadable  # no memory holds that; the core counts in 64 bits
    found = operand(message, blocks, given)
    return found._replace(dtype=_HALVES[spec.dtype.name]) if _is_half(spec) else found


def _message(spec: Any, blocks: int, writable: bool = False) -> Message:
    return read(spec.view(np.uint16) if _is_half(spec) else spec, blocks, writable)


def _is_half(spec: Any) -> bool:
    """Whether it is an array of a type that buffers or some MPIs have no name for."""
    return isinstance(spec, np.ndarray) and spec.dtype.name in _HALVES and spec.dtype.isnative


def _in_place(spec: object) -> bool:
    return spec is None or spec is MPI.IN_PLACE
