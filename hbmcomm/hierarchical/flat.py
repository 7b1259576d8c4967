"""Short messages, and Barrier: one nonblocking call of MPI among all ranks, whatever their hosts.

A message takes MPI microseconds, where a step of `between` takes Python tens of them, and the ranks
of a host need not wait for each other before and after. Longer messages would go over a host's link
once for each of its ranks. `wire` waits, so that a lost rank is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm.hierarchical.between import AUTO
from hbmcomm.hierarchical.blocks import Pack
from hbmcomm.hierarchical.links import Call
from hbmcomm.hierarchical.task import Task
from hbmcomm.hierarchical.ways import Ways
from hbmcomm.quantities import KIB
from hbmcomm.transports.native import DTYPES, REDUCTIONS, lib

Start = Callable[[MPI.Intracomm], MPI.Request]

_MOST = {
    "Barrier": 0,
    "Bcast": 64 * KIB,
    "Reduce": 128 * KIB,
    "Allreduce": 256 * KIB,
    "Gather": 128 * KIB,
    "Scatter": 128 * KIB,
    "Allgather": 256 * KIB,
    "Alltoall": 256 * KIB,
}
"""Bytes that one host's link carries at most, about."""
if MPI.get_vendor()[0] == "MPICH":
    _MOST["Bcast"] = 128 * KIB  # its nonblocking Bcast is quicker than others'
_BEGIN = {name: getattr(MPI.Intracomm, f"I{name.lower()}") for name in _MOST}
_REDUCED, _ROOTED = ("Reduce", "Allreduce"), ("Reduce", "Gather", "Scatter")
_KINDS = ("int", "uint", "float32", "float64", "complex")
_DATATYPES = {
    number: MPI.Datatype.fromcode(np.dtype(name).char)
    for number, name in enumerate(DTYPES)
    if name.startswith(_KINDS)
}
_ARRAYS = {np.dtype(DTYPES[number]): number for number in _DATATYPES}
_OPS = {
    number: getattr(MPI, name)
    for number, name in enumerate(REDUCTIONS)
    if name not in ("MAXLOC", "MINLOC")
}
_OF_OPS = {id(op): number for number, op in _OPS.items()}


# ---- plain arrays, which mpi4py takes as they are ----


def of_arrays(ways: Ways, name: str, arguments: Sequence[Any]) -> tuple[Call, Start] | None:
    """A call on plain arrays; None: run() may do it.

    Only calls that run() does on ranks with other arguments.
    """
    if name not in _MOST:
        return None
    if name == "Barrier":
        return (Call(name), MPI.Intracomm.Ibarrier) if _is_short(ways, name, 0) else None
    if name == "Bcast":
        memory, root = arguments
        sent = received = memory
    elif name in _REDUCED:
        sent, received, op, root = (*arguments, 0)[:4]
    else:
        sent, received, root = (*arguments, 0)[:3]  # 0: of a call without one
    if type(root) is not int or root not in ways.layout.host_of:
        return None
    nbytes = _block_bytes(ways, name, sent, received, root)
    if nbytes is None or not _is_short(ways, name, nbytes):
        return None
    if name in _REDUCED and not _reduces(received if sent is MPI.IN_PLACE else sent, op):
        return None
    call = Call.of(name, nbytes, root)
    if name == "Bcast":
        return call, lambda comm: comm.Ibcast(memory, root)
    begin = _BEGIN[name]
    more = (op,) if name in _REDUCED else ()
    rooted = (root,) if name in _ROOTED else ()
    return call, lambda comm: begin(comm, sent, received, *more, *rooted)


def _block_bytes(ways: Ways, name: str, sent: Any, received: Any, root: int) -> int | None:
    """Bytes of this rank's own block; None where an array is not plain, or does not fit."""
    ranks, at_root = len(ways.layout.host_of), ways.layout.rank == root
    reads = at_root if name in ("Bcast", "Scatter") else True
    writes = not at_root if name == "Bcast" else at_root or name not in ("Reduce", "Gather")
    if sent is MPI.IN_PLACE and writes and name in _REDUCED:
        reads = False
    if reads and not _is_plain(sent):
        return None
    if writes and not (_is_plain(received) and received.flags.writeable):
        return None
    given = ranks if name in ("Scatter", "Alltoall") else 1  # blocks
    taken = ranks if name in ("Gather", "Allgather", "Alltoall") else 1
    if reads and writes:
        if sent.dtype is not received.dtype or np.may_share_memory(sent, received):
            return None
        if sent.size * taken != received.size * given or sent.size % given:
            return None
    return int(sent.nbytes // given if reads else received.nbytes // taken)


def _reduces(array: Any, op: Any) -> bool:
    """Whether the core has an operation for the entries of a plain array: every MPI has it then."""
    return bool(lib.hbm_reduces(_ARRAYS[array.dtype], _OF_OPS.get(id(op), -1)))


def _is_short(ways: Ways, name: str, nbytes: int) -> bool:
    layout = ways.layout
    if ways.settings.algorithm != AUTO or len(layout.hosts) == 1:  # the core does it alone
        return False
    blocks = len(layout.host_of) if name in ("Gather", "Scatter", "Allgather", "Alltoall") else 1
    ranks = 1 if name in ("Gather", "Scatter") else layout.most
    return nbytes * blocks * ranks <= _MOST[name]


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype in _ARRAYS and array.flags.c_contiguous


# ---- any arguments ----


def fits(ways: Ways, task: Task) -> bool:
    """Whether run() does a call; alike on all ranks."""
    if task.name not in _MOST or not _is_short(ways, task.name, task.nbytes):
        return False
    known = int(task.call.dtype) in _DATATYPES and int(task.call.reduction) in _OPS
    return known or task.name not in _REDUCED


def run(ways: Ways, task: Task) -> None:
    if task.name == "Barrier":
        ways.wire.collective(task.name, MPI.Intracomm.Ibarrier)
    elif task.name == "Bcast":
        memory = _bytes(task.recv, task.nbytes)
        ways.wire.collective(task.name, lambda comm: comm.Ibcast(memory, task.root))
    elif task.name in _REDUCED:
        _reduce(ways, task)
    else:
        _move(ways, task)


def _reduce(ways: Ways, task: Task) -> None:
    datatype, op = _DATATYPES[int(task.call.dtype)], _OPS[int(task.call.reduction)]
    takes = task.name == "Allreduce" or ways.layout.rank == task.root
    given: Any = [_memory(task.send, task.nbytes), datatype]
    taken = [_memory(task.recv, task.nbytes), datatype] if takes else None
    if takes and task.send == task.recv:
        given = MPI.IN_PLACE
    begin, rooted = _BEGIN[task.name], (task.root,) if task.name in _ROOTED else ()
    ways.wire.collective(task.name, lambda comm: begin(comm, given, taken, op, *rooted))


def _move(ways: Ways, task: Task) -> None:
    """Gather, Scatter, Allgather or Alltoall; blocks with gaps in between are packed."""
    name, rank, ranks = task.name, ways.layout.rank, len(ways.layout.host_of)
    at_root, own = rank == task.root, [(0, task.nbytes)]
    gives_all = name in ("Alltoall", "Scatter")
    takes_all = name in ("Alltoall", "Allgather", "Gather")
    sent = Pack(task.sent_parts(ranks) if gives_all else own)
    received = Pack(task.received_parts(ranks) if takes_all else own)
    given: Any = None
    taken: Any = None
    if name != "Scatter" or at_root:
        sent.pack(task.send)
        given = _bytes(sent.address_in(task.send), sent.nbytes)
    if name != "Gather" or at_root:
        taken = _bytes(received.address_in(task.recv), received.nbytes)
    if takes_all and not gives_all and taken and _is_block(task.send, taken, rank, task.nbytes):
        given = MPI.IN_PLACE
    elif gives_all and not takes_all and given and _is_block(task.recv, given, rank, task.nbytes):
        taken = MPI.IN_PLACE
    begin, rooted = _BEGIN[name], (task.root,) if name in _ROOTED else ()
    ways.wire.collective(name, lambda comm: begin(comm, given, taken, *rooted))
    if taken is not None:
        received.unpack(task.recv)


def _is_block(address: int, blocks: list[Any], rank: int, nbytes: int) -> bool:
    """Whether a rank's block there is its own memory."""
    return bool(address == blocks[0].address + rank * nbytes)


def _bytes(address: int, nbytes: int) -> list[Any]:
    return [_memory(address, nbytes), MPI.BYTE]


def _memory(address: int, nbytes: int) -> MPI.buffer:
    return MPI.buffer.fromaddress(address, nbytes)
