"""Rank program: right results have nothing wrong, and whatever is spoilt on any rank is seen.

Over the first rank, the first two, and so on up to all.
"""

import numpy as np
from mpi4py import MPI

from experiments.measure import operations
from experiments.model.launch import OPERATIONS
from experiments.model.lower_bound import COPY
from experiments.schedule import footprint

ELEMENTS = 600  # more than two periods of the pattern


class Result:
    """What one operation left in fresh buffers."""

    def __init__(self, comm: MPI.Intracomm, operation: str, dtype: str, iteration: int) -> None:
        sent, received = footprint.sizes(operation, comm.rank, comm.size)
        self.comm, self.operation, self.iteration = comm, operation, iteration
        self.pattern = operations.ramp(ELEMENTS * comm.size, dtype)
        self.send = np.empty(sent * ELEMENTS, dtype)
        self.recv = np.full(received * ELEMENTS, 99, dtype)
        operations.fill(self.send, self.pattern, comm.rank, iteration)
        if operation == "bcast" and comm.rank != footprint.ROOT:
            self.send[:] = 99
        operations.call(operation, comm, self.send, self.recv)()
        self.left = self.send if operation == "bcast" else self.recv

    def wrong(self) -> list[int]:
        """By rank."""
        own = operations.wrong(
            self.operation, self.comm, self.send, self.recv, self.pattern, self.iteration
        )
        return self.comm.allgather(own)


SPOILT = {
    "the first element": lambda array: np.concatenate([array[:1] + 1, array[1:]]),
    "the last element": lambda array: np.concatenate([array[:-1], array[-1:] - 1]),
    "a middle element": lambda array: np.where(np.arange(array.size) == array.size // 2, 0, array),
    "shifted by one": lambda array: np.roll(array, 1),
    "an iteration ago": lambda array: array - 1,
    "a row of another rank": lambda array: np.concatenate([array[:-ELEMENTS], array[:ELEMENTS]]),
    "rows in turn": lambda array: np.roll(array, ELEMENTS),
}


def spoil(result: Result, rank: int, how: str) -> int:
    """Spoils one rank's result; every rank gets the number of spoilt elements, or 0."""
    before = result.left.copy()
    if result.comm.rank == rank and before.size:
        result.left[:] = SPOILT[how](before)
    return result.comm.bcast(int(np.count_nonzero(result.left != before)), rank)


def check(comm: MPI.Intracomm, operation: str) -> None:
    for dtype in ("float32", "float64", "int32", "int64"):
        for iteration in (0, 5):
            assert not any(Result(comm, operation, dtype, iteration).wrong()), operation
    seen = 0
    for how in SPOILT:
        for rank in range(comm.size):
            result = Result(comm, operation, "float32", 3)
            expected = [0] * comm.size
            expected[rank] = spoil(result, rank, how)
            assert result.wrong() == expected, f"{operation}: {how} on rank {rank} of {comm.size}"
            seen += expected[rank]
    assert seen, f"{operation} of {comm.size} ranks"


WORLD = MPI.COMM_WORLD
for size in range(1, WORLD.size + 1):
    some = WORLD.Split(0 if WORLD.rank < size else MPI.UNDEFINED, WORLD.rank)
    if some != MPI.COMM_NULL:
        for operation in (COPY, *OPERATIONS):
            check(some, operation)
