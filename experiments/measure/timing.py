"""The clock, its cost, and the loops that time one operation.

Knows nothing of what it times: it is given a call, a preparation and a communicator.
Source: Hoefler and Belli, SC'15, doi:10.1145/2807591.2807644 (stopping rule, rank maximum).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.turns import FIRST

WARMUP = 10  # operations before the first that counts
CLOCK_SHARE = 0.05  # of an interval that reading the clock may take
NARROW = 0.025  # half-width of the median's interval, relative to it, at which timing stops

Call = Callable[[], object]
Prepare = Callable[[int], Call]
Tick = Callable[[int], object]


@dataclass(frozen=True)
class Samples:
    """Seconds per operation, shape (warmup + timed, ranks); complete on rank 0 only.

    Attributes:
        turn: timed iterations of one turn, where several took turns; the last may be shorter.
    """

    seconds: NDArray[np.float64]
    warmup: int
    group: int
    turn: int = 0


def clock_cost() -> float:
    """Seconds that one reading of the clock takes: the median of 2000 pairs."""
    clock = time.perf_counter_ns
    pairs = [clock() - clock() for _ in range(2000)]
    return float(-np.median(pairs)) * 1e-9


def group_size(seconds: float, cost: float) -> int:
    """Operations per interval so that reading the clock stays below CLOCK_SHARE of it.

    A power of two, so that launches of the same cell that differ a little take the same.
    """
    needed = cost / (CLOCK_SHARE * max(seconds, 1e-9))
    return 1 << max(0, math.ceil(math.log2(needed)))


def is_narrow(seconds: NDArray[np.float64]) -> bool:
    """Whether the median's 95 % interval (order statistics) lies within NARROW of it."""
    n = seconds.size
    low, high = math.floor((n - 1.96 * math.sqrt(n)) / 2), math.ceil((n + 1.96 * math.sqrt(n)) / 2)
    if low < 1 or high >= n:
        return False
    ordered = np.sort(seconds)
    return bool(ordered[high] - ordered[low - 1] <= 2 * NARROW * np.median(ordered))


class Timer:
    """One operation, timed turn by turn; every method is a collective over comm.

    Attributes:
        seconds: of one operation as warming up showed it, the slowest rank's; on rank 0.
        group: operations that an interval needs so that the clock costs little; on rank 0.
    """

    def __init__(
        self, prepare: Prepare, comm: MPI.Intracomm, cost: float, tick: Tick, gate: Call | None
    ) -> None:
        """Warm up.

        Args:
            prepare: given the iteration's number, makes the buffers ready, outside the timed
                interval, and returns the call to be timed. A group repeats one call: its buffers
                are not made ready again in between, so their lines are in the cache of whoever used
                them last.
            comm: for the decisions of rank 0, not for the operation.
            cost: clock_cost() of this rank.
            tick: given the operations of each batch when it is done, outside the timed intervals.
            gate: the barrier that sets all ranks off, where the cadence is isolated.
        """
        self._prepare, self._comm, self._tick, self._gate = prepare, comm, tick, gate
        self._done, self._group = 0, 1
        self._warm = [self._batch(WARMUP)]
        self._timed: list[NDArray[np.float64]] = []
        warm = self._warm[0]
        self.seconds = float(np.median(warm.max(axis=1)))
        self.group = group_size(float(np.median(warm, axis=0).min()), cost)

    def turn(self, count: int, group: int) -> None:
        """Time `count` intervals of `group` operations, after some that do not count."""
        self._group = group
        self._warm.append(self._batch(max(FIRST, math.ceil(count / 10))))
        self._timed.append(self._batch(count))

    def is_narrow(self) -> bool:
        """Whether the median of all turns so far is known well enough; on rank 0."""
        return is_narrow(np.concatenate(self._timed).max(axis=1))

    def samples(self) -> Samples:
        """What was timed, those that do not count first."""
        warm = np.concatenate(self._warm)
        turn = len(self._timed[0]) if self._timed else 0
        return Samples(np.concatenate([warm, *self._timed]), len(warm), self._group, turn)

    def _batch(self, count: int) -> NDArray[np.float64]:
        first, self._done = self._done, self._done + count
        found = batch(self._prepare, self._comm, self._gate, first, count, self._group)
        self._tick(count * self._group)
        return found


def batch(
    prepare: Prepare,
    comm: MPI.Intracomm,
    gate: Call | None,
    first: int,
    count: int,
    group: int,
) -> NDArray[np.float64]:
    """Seconds per operation of `count` iterations, gathered on rank 0: shape (count, ranks)."""
    clock = time.perf_counter_ns
    repeat = range(group)
    own = np.empty(count)
    for i in range(count):
        call = prepare(first + i)
        if gate:
            gate()
        begin = clock()
        for _ in repeat:
            call()
        own[i] = clock() - begin
    own *= 1e-9 / group
    every = np.empty((comm.size, count)) if comm.rank == 0 else None
    comm.Gather(own, every, root=0)
    return every.T if every is not None else own[:, np.newaxis]
