"""What each operation calls, how large its buffers are, and what must be in them afterwards.

Values are small whole numbers that name their rank, position and iteration, so that every
reduction is exact in every dtype and a byte in the wrong place shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.bound import BARRIER, COPY

ROOT = 0
PERIOD = 251  # values repeat after a prime number of elements, so shifted data never matches

Array = NDArray[Any]


@dataclass(frozen=True)
class Sizes:
    """Messages that a rank's buffers hold.

    A message is what one rank contributes; where it contributes something else for every other
    rank (alltoall, reduce_scatter), what it contributes for one.
    """

    send: int
    recv: int


def sizes(operation: str, rank: int, ranks: int) -> Sizes:
    """Buffer sizes of one rank, in messages."""
    at_root = rank == ROOT
    return {
        COPY: Sizes(1, 1),
        "bcast": Sizes(1, 0),
        "gather": Sizes(1, ranks if at_root else 0),
        "scatter": Sizes(ranks if at_root else 0, 1),
        "reduce": Sizes(1, 1 if at_root else 0),
        "allreduce": Sizes(1, 1),
        "allgather": Sizes(1, ranks),
        "reduce_scatter": Sizes(ranks, 1),
        "alltoall": Sizes(ranks, ranks),
        BARRIER: Sizes(0, 0),
    }[operation]


def call(operation: str, comm: MPI.Intracomm, send: Array, recv: Array) -> Callable[[], object]:
    """The operation as a function of no arguments. Arrays as sizes() tells, flat."""
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
