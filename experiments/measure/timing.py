"""The clock, its cost, and the loops that time one operation.

Knows nothing of what it times: it is given a call, a preparation and a communicator.
Source: Hoefler and Belli, SC'15, doi:10.1145/2807591.2807644 (stopping rule, rank maximum).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.model.mpi_settings import WARMUP
from experiments.schedule.turns import FIRST

CLOCK_SHARE = 0.025  # of an interval that reading the clock takes; 5 % in blocks twice as fast
NARROW = 0.025  # half-width of the median's interval, relative to it, at which timing stops

CLOCK = time.monotonic_ns  # CLOCK_MONOTONIC: one for all processes of a host, containers too

Call = Callable[[], object]
Prepare = Callable[[int], Call]
Tick = Callable[[int], object]


class Batch(NamedTuple):
    """Intervals that followed each other, shape (intervals, ranks); complete on rank 0 only.

    Attributes:
        seconds: per operation.
        begins: when each interval began, in ns of CLOCK; all processes of a host share it.
    """

    seconds: NDArray[np.float64]
    begins: NDArray[np.int64]

    def offsets(self) -> NDArray[np.float32]:
        """Seconds from the earliest begin; float32 keeps 1e-7 of the batch's length."""
        offsets: NDArray[np.int64] = self.begins - self.begins.min()
        return (offsets * 1e-9).astype(np.float32)


@dataclass(frozen=True)
class Samples:
    """Seconds per operation, shape (warmup + timed, ranks); complete on rank 0 only.

    Attributes:
        turn: timed iterations of one turn, where several took turns; the last may be shorter.
        begin: seconds from the earliest begin of the interval's batch, shape of `seconds`: those
            of a turn are one batch.
        began: the earliest begin of each turn, in ns of CLOCK.
    """

    seconds: NDArray[np.float64]
    warmup: int
    group: int
    turn: int
    begin: NDArray[np.float32]
    began: tuple[int, ...]


def clock_cost() -> float:
    """Seconds that one reading of the clock takes: the median of 2000 pairs."""
    clock = CLOCK
    pairs = [clock() - clock() for _ in range(2000)]
    return float(-np.median(pairs)) * 1e-9


def group_size(seconds: float, cost: float) -> int:
    """Operations per interval so that reading the clock stays below CLOCK_SHARE of it.

    A power of two, so that launches of the same cell that differ a little take the same.
    """
    needed = cost / (CLOCK_SHARE * max(seconds, 1e-9))
    return 1 << max(0, math.ceil(math.log2(needed)))


def is_narrow(seconds: NDArray[np.float64]) -> bool:
    """Whether the median's 95 % interval (order statistics) is within NARROW of it."""
    n = seconds.size
    low, high = math.floor((n - 1.96 * math.sqrt(n)) / 2), math.ceil((n + 1.96 * math.sqrt(n)) / 2)
    if low < 1 or high >= n:
        return False
    ordered = np.sort(seconds)
    return bool(ordered[high] - ordered[low - 1] <= 2 * NARROW * np.median(ordered))


class Timer:
    """One operation, timed turn by turn; every method is a collective over comm.

    Attributes:
        gate: the barrier that sets all ranks off, where the cadence is isolated; turns may have
            another than warming up.
        seconds: of one operation as warming up showed it, the slowest rank's; on rank 0.
        pace: seconds from the beginning of one operation to that of the next; on rank 0.
        group: operations that an interval needs so that the clock costs little; on rank 0.
    """

    def __init__(
        self,
        prepare: Prepare,
        comm: MPI.Intracomm,
        cost: float,
        tick: Tick,
        gate: Call | None,
        warmup: int = WARMUP,
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
            gate: for warming up.
            warmup: operations before the first turn; the last WARMUP of them give `seconds` and
                `group`, for an MPI that tunes itself is slow in those before.
        """
        self._prepare, self._comm, self._tick, self.gate = prepare, comm, tick, gate
        self._done, self._group = 0, 1
        self._warm = [self._batch(warmup)]
        self._timed: list[Batch] = []
        warm = self._warm[0].seconds[-WARMUP:]
        self.seconds = float(np.quantile(warm.max(axis=1), 0.25))  # of few, some disturbed
        self.pace = float(np.median(np.diff(self._warm[0].begins[-WARMUP:, 0]))) * 1e-9
        self.group = group_size(float(np.median(warm, axis=0).min()), cost)

    def turn(self, count: int, group: int, between: int = 0) -> int:
        """Time `count` intervals of `group` operations, after some that do not count; all done.

        Args:
            between: intervals before each timed one that are like it, but not timed.
        """
        self._group, first = group, max(FIRST, math.ceil(count / 10))
        self._warm.append(self._batch(first))
        self._timed.append(self._batch(count, between))
        return (first + count * (1 + between)) * group

    def is_narrow(self) -> bool:
        """Whether the median of all turns so far is known well enough; on rank 0."""
        return is_narrow(np.concatenate([batch.seconds for batch in self._timed]).max(axis=1))

    def samples(self) -> Samples:
        """What was timed, those that do not count first."""
        every = [*self._warm, *self._timed]
        return Samples(
            np.concatenate([batch.seconds for batch in every]),
            warmup=sum(len(batch.seconds) for batch in self._warm),
            group=self._group,
            turn=len(self._timed[0].seconds) if self._timed else 0,
            begin=np.concatenate([batch.offsets() for batch in every]),
            began=tuple(int(batch.begins.min()) for batch in self._timed),
        )

    def _batch(self, count: int, between: int = 0) -> Batch:
        """Time `count` intervals, each after `between` others like it; rank 0 gathers them."""
        clock, prepare, gate, comm = CLOCK, self._prepare, self.gate, self._comm
        first, repeat, every = self._done, range(self._group), 1 + between
        begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
        for i in range(count * every):
            call = prepare(first + i)
            if gate:
                gate()
            begin = clock()
            for _ in repeat:
                call()
            ends[i // every] = clock()  # the last of them stays
            begins[i // every] = begin
        self._done += count * every
        own = np.stack([begins, ends])
        whole = np.empty((comm.size, *own.shape), np.int64) if comm.rank == 0 else own[np.newaxis]
        comm.Gather(own, whole if comm.rank == 0 else None, root=0)
        began, ended = whole[:, 0].T, whole[:, 1].T
        self._tick(count * every * self._group)
        return Batch((ended - began) / (1e9 * self._group), began)
