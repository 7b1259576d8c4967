"""Short messages, and Barrier: one nonblocking call of MPI among all ranks, whatever their hosts.

A message takes MPI microseconds, where a step of `between` takes Python tens of them, and the ranks
of a host need not wait for each other before and after. Longer messages would go over a host's link
once for each of its ranks. `wire` waits, so that a lost rank is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm.collectives.core.native import DTYPES, REDUCTIONS
from hbmcomm.collectives.hierarchical.between.choice import AUTO
from hbmcomm.collectives.hierarchical.hosts.calls import Call
from hbmcomm.collectives.hierarchical.task import Task
from hbmcomm.collectives.hierarchical.ways import Ways
from hbmcomm.quantities import KIB

Start = Callable[[MPI.Intracomm], MPI.Request]

_MOST = {"Barrier": 0, "Bcast": 64 * KIB, "Reduce": 128 * KIB, "Allreduce": 256 * KIB}
"""Bytes of all ranks of a host together."""
_KINDS = ("int", "uint", "float32", "float64", "complex")
_DATATYPES = {
    number: MPI.Datatype.fromcode(np.dtype(name).char)
    for number, name in enumerate(DTYPES)
    if name.startswith(_KINDS)
}
_ARRAYS = {np.dtype(DTYPES[number]) for number in _DATATYPES}
_OPS = {
    number: getattr(MPI, name)
    for number, name in enumerate(REDUCTIONS)
    if name not in ("MAXLOC", "MINLOC")
}
_OF_OPS = {id(op) for op in _OPS.values()}


def of_arrays(ways: Ways, name: str, arguments: Sequence[Any]) -> tuple[Call, Start] | None:
    """A call on plain arrays, which mpi4py takes as they are; None: `of_task` may have it.

    Only calls that `of_task` has on ranks with other arguments.
    """
    if name not in _MOST:
        return None
    if name == "Barrier":
        return (Call(name), _barrier) if _is_short(ways, name, 0) else None
    if name == "Bcast":
        memory, root = arguments
        if not (
            _is_rank(ways, root) and _is_plain(memory) and _is_short(ways, name, memory.nbytes)
        ):
            return None
        return Call(name, memory.nbytes, root), lambda comm: comm.Ibcast(memory, root)
    sent, received, op, root = (*arguments, 0)[:4]
    known = received if sent is MPI.IN_PLACE else sent
    if not (id(op) in _OF_OPS and _is_plain(known) and _is_short(ways, name, known.nbytes)):
        return None
    if sent is not MPI.IN_PLACE and received is not None:
        fits = _is_plain(received) and received.dtype is sent.dtype
        if not fits or received.size != sent.size or np.may_share_memory(sent, received):
            return None
    call = Call(name, known.nbytes, root)
    if name == "Allreduce":
        return call, lambda comm: comm.Iallreduce(sent, received, op)
    if not _is_rank(ways, root) or (root == ways.layout.rank) == (received is None):
        return None
    return call, lambda comm: comm.Ireduce(sent, received, op, root)


def of_task(ways: Ways, task: Task) -> Start | None:
    """The start of a call; None where `between` is to do it. Alike on all ranks."""
    if task.name not in _MOST or not _is_short(ways, task.name, task.nbytes):
        return None
    if task.name in ("Reduce", "Allreduce") and not (
        int(task.call.dtype) in _DATATYPES and int(task.call.reduction) in _OPS
    ):
        return None
    return partial(_STARTED[task.name], task=task)


def _is_short(ways: Ways, name: str, nbytes: int) -> bool:
    if ways.settings.algorithm != AUTO or len(ways.layout.hosts) == 1:  # the core does it alone
        return False
    return nbytes * ways.layout.most <= _MOST[name]


def _is_rank(ways: Ways, root: Any) -> bool:
    return type(root) is int and root in ways.layout.host_of


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype in _ARRAYS and array.flags.c_contiguous


def _barrier(comm: MPI.Intracomm, task: Task | None = None) -> MPI.Request:
    return comm.Ibarrier()


def _bcast(comm: MPI.Intracomm, task: Task) -> MPI.Request:
    return comm.Ibcast(_memory(task.recv, task.nbytes, task.nbytes, MPI.BYTE), task.root)


def _allreduce(comm: MPI.Intracomm, task: Task) -> MPI.Request:
    given = MPI.IN_PLACE if task.send == task.recv else _entries(task, task.send)
    return comm.Iallreduce(given, _entries(task, task.recv), _OPS[int(task.call.reduction)])


def _reduce(comm: MPI.Intracomm, task: Task) -> MPI.Request:
    at_root = comm.rank == task.root
    given = MPI.IN_PLACE if at_root and task.send == task.recv else _entries(task, task.send)
    taken = _entries(task, task.recv) if at_root else None
    return comm.Ireduce(given, taken, _OPS[int(task.call.reduction)], task.root)


def _entries(task: Task, address: int) -> Any:
    return _memory(address, task.nbytes, task.count, _DATATYPES[int(task.call.dtype)])


def _memory(address: int, nbytes: int, count: int, datatype: MPI.Datatype) -> Any:
    return [MPI.buffer.fromaddress(address, nbytes), count, datatype]


_STARTED: dict[str, Callable[..., MPI.Request]] = {
    "Barrier": _barrier,
    "Bcast": _bcast,
    "Reduce": _reduce,
    "Allreduce": _allreduce,
}
