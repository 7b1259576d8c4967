"""What each operation calls, and what must be in its buffers afterwards.

Values are small whole numbers that name their rank, position and iteration, so that every
reduction is exact in every dtype and a byte in the wrong place shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.measure.timing import Call
from experiments.model.contender_names import CALLS
from experiments.model.lower_bound import BARRIER, COPY
from experiments.schedule.footprint import ROOT


def nothing() -> None:
    """There is nothing to do."""


@dataclass(frozen=True)
class Ready:
    """One operation over one pair of buffers; every call is a collective.

    Attributes:
        call: what is timed.
        collect: puts the result where it is checked, if it is not there yet.
        close: frees what was made for the operation.
        wake: makes calls possible again after `rest`.
        rest: ends threads that would take CPUs from other contenders; a collective, as `wake` is.
        wrong: does it once and counts wrong elements, where the buffers do not hold the result.
    """

    call: Call
    collect: Callable[[], object] = nothing
    close: Callable[[], object] = nothing
    wake: Callable[[], object] = nothing
    rest: Callable[[], object] = nothing
    wrong: Callable[[], int] | None = None


PERIOD = 251  # values repeat after a prime number of elements, so shifted data never matches

Array = NDArray[Any]


def call(operation: str, comm: MPI.Intracomm, send: Array, recv: Array) -> Callable[[], object]:
    """The operation as a function of no arguments. Arrays are flat, as in footprint.sizes()."""
    if operation == COPY:
        return partial(np.copyto, recv, send)
    return partial(getattr(comm, CALLS[operation]), *arguments(operation, comm, send, recv))


def arguments(operation: str, comm: MPI.Intracomm, send: Array, recv: Array) -> tuple[Any, ...]:
    """What the operation's upper-case calls take: the blocking one and its persistent form."""
    given, taken = (send, recv) if comm.rank == ROOT else (None, None)
    return {
        "bcast": (send, ROOT),
        "gather": (send, taken, ROOT),
        "scatter": (given, recv, ROOT),
        "reduce": (send, taken, MPI.SUM, ROOT),
        "allreduce": (MPI.IN_PLACE if recv is send else send, recv, MPI.SUM),
        "allgather": (send, recv),
        "reduce_scatter": (send, recv, MPI.SUM),
        "alltoall": (send, recv),
        BARRIER: (),
    }[operation]


def ramp(count: int, dtype: str) -> Array:
    """0, 1, ... PERIOD - 1, 0, ...: what fill() adds a rank's salt to."""
    pattern: Array = (np.arange(count) % PERIOD).astype(dtype)
    return pattern


def salt(rank: int, iteration: int) -> int:
    """What distinguishes one rank's data in one iteration from another's."""
    return (7 * rank + iteration) % 97


def fill(send: Array, pattern: Array, rank: int, iteration: int) -> None:
    """Rewrite a send buffer for one iteration."""
    np.add(pattern[: send.size], send.dtype.type(salt(rank, iteration)), out=send)


def wrong(
    operation: str, comm: MPI.Intracomm, send: Array, recv: Array, pattern: Array, iteration: int
) -> int:
    """How many elements of this rank's result are not what the operation should have left."""
    rank, ranks = comm.rank, comm.size
    salts = [salt(source, iteration) for source in range(ranks)]
    part = pattern[rank * recv.size : (rank + 1) * recv.size]
    if operation == "bcast":
        return _differing(send, pattern[: send.size], salts[ROOT])
    if operation == "scatter":
        return _differing(recv, part, salts[ROOT])
    if operation == "reduce_scatter":
        return _differing(recv, part * recv.dtype.type(ranks), sum(salts))
    if operation == COPY:
        return _differing(recv, pattern[: recv.size], salts[rank])
    if recv.size == 0:
        return 0
    if operation in ("reduce", "allreduce"):
        return _differing(recv, pattern[: recv.size] * recv.dtype.type(ranks), sum(salts))
    rows = recv.reshape(ranks, -1)
    first = rank * rows.shape[1] if operation == "alltoall" else 0
    own = pattern[first : first + rows.shape[1]]
    return sum(_differing(row, own, added) for row, added in zip(rows, salts, strict=True))


def _differing(actual: Array, pattern: Array, added: int) -> int:
    return int(np.count_nonzero(actual != pattern + actual.dtype.type(added)))
