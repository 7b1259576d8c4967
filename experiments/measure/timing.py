"""The clock, its cost, and the loop that times one operation until the answer is narrow enough.

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

from experiments.spec import Measurement

WARMUP = 10  # operations before the first that counts, and at least a tenth of those that count
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


def measure(
    prepare: Prepare,
    comm: MPI.Intracomm,
    asked: Measurement,
    cost: float,
    tick: Tick,
    gate: Call,
) -> Samples:
    """Time one operation; a collective over comm.

    Args:
        prepare: given the iteration's number, makes the buffers ready, outside the timed interval,
            and returns the call to be timed. A group repeats one call: its buffers are not made
            ready again in between, so their lines are in the cache of whoever used them last.
        comm: for the decisions of rank 0, not for the operation.
        cost: clock_cost() of this rank.
        tick: given the operations of each batch when it is done, outside the timed intervals.
        gate: the barrier that sets all ranks off, where the cadence is isolated.
    """
    before = gate if asked.cadence == "isolated" else None

    def batch_of(first: int, count: int, group: int) -> NDArray[np.float64]:
        found = batch(prepare, comm, before, first, count, group)
        tick(count * group)
        return found

    warm = [batch_of(0, WARMUP, 1)]
    planned, group = _plan(warm[0], comm, asked, cost)
    more = max(0, math.ceil(planned / 10) - WARMUP)
    if more:
        warm.append(batch_of(WARMUP, more, group))
    warmup = WARMUP + more

    timed: list[NDArray[np.float64]] = []
    done, count, started = 0, asked.min_iterations, time.monotonic()
    while count:
        timed.append(batch_of(warmup + done, count, group))
        done += count
        left = min(planned, 10 * warmup) - done
        late = time.monotonic() - started > asked.time_cap
        enough = comm.rank == 0 and is_narrow(np.concatenate(timed).max(axis=1))
        count = comm.bcast(0 if left <= 0 or late or enough else min(left, done), root=0)
    return Samples(np.concatenate(warm + timed), warmup, group)


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


def _plan(
    warm: NDArray[np.float64], comm: MPI.Intracomm, asked: Measurement, cost: float
) -> tuple[int, int]:
    """Iterations to time and operations per interval, decided by rank 0 for all."""
    typical, quickest = float(np.median(warm.max(axis=1))), float(np.median(warm, axis=0).min())
    fitting = math.ceil(asked.time_cap / max(typical, 1e-9))
    planned = min(asked.max_iterations, max(asked.min_iterations, fitting))
    found: tuple[int, int] = comm.bcast((planned, group_size(quickest, cost)), root=0)
    return found
