"""Rank program: right results have nothing wrong, and whatever is spoilt on any rank is found."""

import numpy as np
from mpi4py import MPI

from experiments.measure import operations
from experiments.model.launch import OPERATIONS
from experiments.model.lower_bound import COPY
from experiments.schedule import footprint

COMM = MPI.COMM_WORLD
ELEMENTS = 600  # more than two periods of the pattern


class Result:
    """What one operation left in fresh buffers."""

    def __init__(self, operation: str, dtype: str, iteration: int) -> None:
        sent, received = footprint.sizes(operation, COMM.rank, COMM.size)
        self.operation, self.iteration = operation, iteration
        self.pattern = operations.ramp(ELEMENTS * COMM.size, dtype)
        self.send = np.empty(sent * ELEMENTS, dtype)
        self.recv = np.full(received * ELEMENTS, 99, dtype)
        operations.fill(self.send, self.pattern, COMM.rank, iteration)
        if operation == "bcast" and COMM.rank != footprint.ROOT:
            self.send[:] = 99
        operations.call(operation, COMM, self.send, self.recv)()
        self.found = self.send if operation == "bcast" else self.recv

    def wrong(self) -> list[int]:
        """By rank."""
        own = operations.wrong(
            self.operation, COMM, self.send, self.recv, self.pattern, self.iteration
        )
        return COMM.allgather(own)


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
    before = result.found.copy()
    if COMM.rank == rank and before.size:
        result.found[:] = SPOILT[how](before)
    return COMM.bcast(int(np.count_nonzero(result.found != before)), rank)


for operation in (COPY, *OPERATIONS):
    for dtype in ("float32", "float64", "int32", "int64"):
        for iteration in (0, 5):
            assert not any(Result(operation, dtype, iteration).wrong()), operation
    seen = 0
    for how in SPOILT:
        for rank in range(COMM.size):
            result = Result(operation, "float32", 3)
            expected = [0] * COMM.size
            expected[rank] = spoil(result, rank, how)
            assert result.wrong() == expected, f"{operation}: {how} on rank {rank}"
            seen += expected[rank]
    assert seen, operation
