"""What each operation calls, and what must be in its buffers afterwards.

Values are small whole numbers that name their rank, position and iteration, so that every
reduction is exact in every dtype and a byte in the wrong place shows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.model.lower_bound import BARRIER, COPY
from experiments.schedule.footprint import ROOT

PERIOD = 251  # values repeat after a prime number of elements, so shifted data never matches

Array = NDArray[Any]


def call(operation: str, comm: MPI.Intracomm, send: Array, recv: Array) -> Callable[[], object]:
    """The operation as a function of no arguments. Arrays as footprint.sizes() tells, flat."""
    at_root = comm.rank == ROOT
    taken = recv if at_root else None
    given = send if at_root else None
    return {
        COPY: lambda: np.copyto(recv, send),
        "bcast": lambda: comm.Bcast(send, ROOT),
        "gather": lambda: comm.Gather(send, taken, ROOT),
        "scatter": lambda: comm.Scatter(given, recv, ROOT),
        "reduce": lambda: comm.Reduce(send, taken, MPI.SUM, ROOT),
        "allreduce": lambda: comm.Allreduce(send, recv, MPI.SUM),
        "allgather": lambda: comm.Allgather(send, recv),
        "reduce_scatter": lambda: comm.Reduce_scatter_block(send, recv, MPI.SUM),
        "alltoall": lambda: comm.Alltoall(send, recv),
        BARRIER: comm.Barrier,
    }[operation]


def ramp(count: int, dtype: str) -> Array:
    """0, 1, ... PERIOD - 1, 0, ...: what fill() adds a rank's salt to."""
    found: Array = (np.arange(count) % PERIOD).astype(dtype)
    return found


def salt(rank: int, iteration: int) -> int:
    """What tells one rank's data in one iteration from another's."""
    return (7 * rank + iteration) % 97


def fill(send: Array, pattern: Array, rank: int, iteration: int) -> None:
    """Rewrite a send buffer for one iteration."""
    np.add(pattern[: send.size], send.dtype.type(salt(rank, iteration)), out=send)


def wrong(
    operation: str, comm: MPI.Intracomm, send: Array, recv: Array, pattern: Array, iteration: int
) -> int:
    """How many elements of this rank's result are not what the operation should have left."""
    rank, ranks = comm.rank, comm.size
    salts = [salt(each, iteration) for each in range(ranks)]
    if operation == "bcast":
        return _differing(send, pattern[: send.size], salts[ROOT])
    if operation == "scatter":
        own = pattern[rank * recv.size : (rank + 1) * recv.size]
        return _differing(recv, own, salts[ROOT])
    if operation == "reduce_scatter":
        own = pattern[rank * recv.size : (rank + 1) * recv.size]
        return _differing(recv, own * recv.dtype.type(ranks), sum(salts))
    if operation == COPY:
        return _differing(recv, pattern[: recv.size], salts[rank])
    if recv.size == 0:
        return 0
    if operation in ("reduce", "allreduce"):
        return _differing(recv, pattern[: recv.size] * recv.dtype.type(ranks), sum(salts))
    rows = recv.reshape(ranks, -1)
    first = rank * rows.shape[1] if operation == "alltoall" else 0
    own = pattern[first : first + rows.shape[1]]
    return sum(_differing(row, own, each) for row, each in zip(rows, salts, strict=True))


def _differing(found: Array, pattern: Array, added: int) -> int:
    return int(np.count_nonzero(found != pattern + found.dtype.type(added)))
