"""What a contender calls for each operation: plain, persistent, nonblocking, pickled, in place.

Every contender leaves the same bytes in the same buffers, so that one check serves for all.
"""

import importlib
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.model.contender_names import CALLS
from experiments.model.lower_bound import BARRIER, COPY
from experiments.programs.measure import operations
from experiments.programs.measure.buffers import agree
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready
from experiments.programs.measure.timing import Call
from experiments.schedule.footprint import ROOT


class ContenderMissing(Exception):
    """A contender cannot be had; the text says why, alike on every rank."""


class Contender(Protocol):
    """One way to call operations; None for an operation that it lacks."""

    def __call__(self, operation: str, send: Array, recv: Array) -> Ready | None: ...


def of_transport(comm: MPI.Intracomm, transport: str) -> hbmcomm.Communicator:
    """A Communicator of ordinary memory; a collective.

    Raises:
        ContenderMissing: these ranks cannot have the transport.
    """
    problem = ""
    try:
        made = hbmcomm.Communicator(comm, kind="regular", transport=transport)
    except hbmcomm.HbmcommError as error:
        problem = str(error)
    agree(comm, problem, ContenderMissing)
    return made


def in_place(contender: Contender) -> Contender:
    """The contender's call with one buffer for both; the result is copied after it is timed."""

    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
        made = contender(operation, send, send)
        return made and replace(made, collect=partial(np.copyto, recv, send))

    return ready


def reducing(given: Any, taken: Any, reduce_taken: Call) -> Call:
    """What reduces one tensor into another, of a call that reduces the second in place."""
    if given is taken:
        return reduce_taken
    copy = taken.copy_

    def copy_and_reduce() -> None:
        copy(given)
        reduce_taken()

    return copy_and_reduce


def tensors(send: Array, recv: Array) -> tuple[Any, Any]:
    """Both buffers as torch sees them; one tensor where they are one buffer."""
    torch: Any = importlib.import_module("torch")
    given = torch.from_numpy(send)
    return given, given if recv is send else torch.from_numpy(recv)


def plain(comm: MPI.Intracomm) -> Contender:
    """The upper-case calls of a communicator."""
    return lambda operation, send, recv: Ready(operations.call(operation, comm, send, recv))


def persistent(comm: MPI.Intracomm, broken: Collection[str] = ()) -> Contender:
    """MPI-4's persistent calls: arguments read once, then started and waited for.

    Args:
        broken: operations that this MPI cannot do in this form.
    """

    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
        if operation == COPY or operation in broken:
            return None
        try:
            begin = getattr(comm, f"{CALLS[operation]}_init")
            request = begin(*operations.arguments(operation, comm, send, recv))
        except NotImplementedError:  # the MPI is older than MPI-4
            return None
        return Ready(_run(request), close=request.Free)

    return ready


def _run(request: Any) -> Call:
    """One run of a persistent request; each library is called in its quickest form."""
    if callable(request):
        run: Call = request
        return run
    start, wait = request.Start, request.Wait

    def start_and_wait() -> None:
        start()
        wait()

    return start_and_wait


def nonblocking(comm: MPI.Intracomm) -> Contender:
    """The calls that begin with I, each followed by Wait: both are timed, with the new request."""
    return partial(_nonblocking, comm)


def _nonblocking(comm: MPI.Intracomm, operation: str, send: Array, recv: Array) -> Ready | None:
    taken = recv if comm.rank == ROOT else None
    given = send if comm.rank == ROOT else None
    calls: dict[str, Call] = {
        "bcast": lambda: comm.Ibcast(send, ROOT).Wait(),
        "gather": lambda: comm.Igather(send, taken, ROOT).Wait(),
        "scatter": lambda: comm.Iscatter(given, recv, ROOT).Wait(),
        "reduce": lambda: comm.Ireduce(send, taken, MPI.SUM, ROOT).Wait(),
        "allreduce": lambda: comm.Iallreduce(send, recv, MPI.SUM).Wait(),
        "allgather": lambda: comm.Iallgather(send, recv).Wait(),
        "reduce_scatter": lambda: comm.Ireduce_scatter_block(send, recv, MPI.SUM).Wait(),
        "alltoall": lambda: comm.Ialltoall(send, recv).Wait(),
        BARRIER: lambda: comm.Ibarrier().Wait(),
    }
    return Ready(calls[operation]) if operation in calls else None


def pickled(comm: MPI.Intracomm) -> Contender:
    """mpi4py's lower-case calls, which take and give Python objects."""
    return partial(_pickled, comm)


def _pickled(comm: MPI.Intracomm, operation: str, send: Array, recv: Array) -> Ready | None:
    at_root = comm.rank == ROOT
    rows = list(send.reshape(comm.size, -1)) if send.size % comm.size == 0 else []
    calls: dict[str, Callable[[], Any]] = {
        "bcast": lambda: comm.bcast(send, ROOT),
        "gather": lambda: comm.gather(send, ROOT),
        "scatter": lambda: comm.scatter(rows if at_root else None, ROOT),
        "reduce": lambda: comm.reduce(send, MPI.SUM, ROOT),
        "allreduce": lambda: comm.allreduce(send, MPI.SUM),
        "allgather": lambda: comm.allgather(send),
        "alltoall": lambda: comm.alltoall(rows),
    }
    if operation not in calls:
        return None
    call = calls[operation]
    target = send if operation == "bcast" else recv
    kept: list[Any] = [None]

    def keep() -> None:
        kept[0] = call()

    def collect() -> None:
        if kept[0] is not None:
            target.reshape(_shape(kept[0], target))[:] = kept[0]

    return Ready(keep, collect, kept.clear)


def _shape(result: Any, target: Array) -> tuple[int, ...]:
    """A list of messages is as many rows."""
    return (len(result), -1) if isinstance(result, list) else target.shape
