"""What a contender calls for each operation: plain, persistent, nonblocking, pickled, in place.

Every contender leaves the same bytes in the same buffers, so that one check serves for all.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.measure import operations
from experiments.measure.buffers import agree
from experiments.measure.operations import Array, Ready
from experiments.measure.timing import Call
from experiments.model.contender_names import CALLS
from experiments.schedule.footprint import ROOT


class ContenderMissing(Exception):
    """A contender cannot be had; the text says why, alike on every rank."""


Contender = Callable[[str, Array, Array], Ready | None]
"""One way to call an operation over a send and a receive buffer; None for one that it lacks."""

Made = TypeVar("Made")
REASONS = (ContenderMissing, hbmcomm.HbmcommError, ImportError, OSError, RuntimeError)


def on_all(comm: MPI.Intracomm, make: Callable[[], Made]) -> Made:
    """What each rank makes; a collective.

    Raises:
        ContenderMissing: on every rank, with the first line of the first rank's error.
    """
    problem = ""
    try:
        made = make()
    except REASONS as error:
        problem = str(error).partition("\n")[0]
    agree(comm, problem, ContenderMissing)
    return made


def require(comm: MPI.Intracomm, *packages: str) -> None:
    """Refuse ranks that cannot import packages; a collective.

    Raises:
        ContenderMissing: on every rank, naming them.
    """
    lacking = ", ".join(name for name in packages if not _is_installed(name))
    agree(comm, lacking and f"{lacking} cannot be imported", ContenderMissing)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def of_transport(comm: MPI.Intracomm, transport: str) -> hbmcomm.Communicator:
    """A Communicator of ordinary memory; a collective.

    Raises:
        ContenderMissing: these ranks cannot have the transport.
    """
    return on_all(comm, partial(hbmcomm.Communicator, comm, "regular", transport))


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
    import torch

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
        if operation not in CALLS or operation in broken:
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

    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
        if operation not in CALLS:
            return None
        call = getattr(comm, f"I{CALLS[operation].lower()}")
        begin = partial(call, *operations.arguments(operation, comm, send, recv))
        return Ready(lambda: begin().Wait())

    return ready


def pickled(comm: MPI.Intracomm) -> Contender:
    """mpi4py's lower-case calls, which take and give Python objects."""
    at_root = comm.rank == ROOT

    def ready(operation: str, send: Array, recv: Array) -> Ready | None:
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
                target.reshape(np.shape(kept[0]))[:] = kept[0]  # a list of messages is as many rows

        return Ready(keep, collect, kept.clear)

    return ready
