"""Times several contenders in turn, in short batches in random order, until all are known well.

Whatever disturbs the machine for a moment disturbs all of them. Knows nothing of what it times.
"""

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from experiments.measure.timing import (
    WARMUP,
    Batch,
    Prepare,
    Samples,
    Tick,
    batch,
    group_size,
    is_narrow,
)
from experiments.measure.trial import WrongResult
from experiments.spec import Measurement

ROUNDS = 10  # turns that a contender's iterations are dealt out over, at most


@dataclass(frozen=True)
class Entrant:
    """One contender's operation.

    Attributes:
        prepare: as timing.measure takes it.
        check: compares what the last call left with what it should be; collective.
        ours: a wrong result of ours voids everything; that of another only what it did itself.
        begin: called before each of its turns, outside the timed intervals; collective.
    """

    prepare: Prepare
    check: Callable[[], object]
    ours: bool = True
    begin: Callable[[], object] = lambda: None


@dataclass
class _Turns:
    """How far one contender is; the same numbers on every rank."""

    entrant: Entrant
    planned: int = 0
    step: int = 0
    warmup: int = 0
    done: int = 0
    wrong: str = ""
    batches: list[Batch] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return self.done < self.planned

    def check(self) -> None:
        """Raises WrongResult on every rank, or notes it and counts as wrong, where not ours."""
        try:
            self.entrant.check()
        except WrongResult as error:
            if self.entrant.ours:
                raise
            self.wrong = str(error)

    @property
    def timed(self) -> NDArray[np.float64]:
        """Seconds of the iterations that count; rank 0 alone has those of all ranks."""
        slowest: NDArray[np.float64] = _seconds(self.batches)[self.warmup :].max(axis=1)
        return slowest


def interleave(
    entrants: Mapping[str, Entrant],
    comm: MPI.Intracomm,
    asked: Measurement,
    cost: float,
    rng: random.Random,
    tick: Tick,
) -> tuple[dict[str, Samples], dict[str, str]]:
    """Time all entrants; a collective over comm.

    Returns:
        Samples of those whose results were right, and what was wrong with those of the others.

    All of a cell are timed in groups of one size, so that the clock costs each the same.

    Args:
        comm: for barriers and the decisions of rank 0, not for the operations.
        asked: time_cap is for each entrant; warm-up is not counted.
        cost: timing.clock_cost() of this rank.
        rng: in the same state on every rank.
        tick: given the operations of each batch when it is done.
    """
    gate = comm.Barrier if asked.cadence == "isolated" else None
    turns = {name: _Turns(entrant) for name, entrant in entrants.items()}

    def take(each: _Turns, count: int, group: int) -> None:
        first = each.warmup + each.done
        each.entrant.begin()
        each.batches.append(batch(each.entrant.prepare, comm, gate, first, count, group))
        tick(count * group)

    wrong: dict[str, str] = {}
    paces = {name: _warm_up(turns[name], take) for name in _shuffled(turns, rng)}
    _leave_out_wrong(turns, wrong)
    group = _plan(turns, paces, comm, asked, cost)
    for name in _shuffled(turns, rng):
        more = math.ceil(turns[name].planned / 10) - WARMUP
        if more > 0:
            take(turns[name], more, group)
            turns[name].warmup += more

    deadline = time.monotonic() + asked.time_cap * len(turns)
    last = False
    while active := [name for name in turns if turns[name].active]:
        for name in rng.sample(active, len(active)):
            each = turns[name]
            count = min(each.step, each.planned - each.done)
            take(each, count, group)
            each.done = each.planned if last else each.done + count
            if not each.active:
                each.check()
        last = comm.bcast(comm.rank == 0 and _enough(turns, asked, deadline), root=0)
    _leave_out_wrong(turns, wrong)
    samples = {
        name: Samples(
            _seconds(each.batches),
            each.warmup,
            group,
            each.step,
            np.concatenate([one.offsets() for one in each.batches]),
            (),
        )
        for name, each in turns.items()
    }
    return samples, wrong


def _seconds(batches: list[Batch]) -> NDArray[np.float64]:
    return np.concatenate([each.seconds for each in batches])


def _leave_out_wrong(turns: dict[str, _Turns], wrong: dict[str, str]) -> None:
    for name in [name for name, each in turns.items() if each.wrong]:
        wrong[name] = turns.pop(name).wrong


def _shuffled(turns: Mapping[str, _Turns], rng: random.Random) -> list[str]:
    return rng.sample(list(turns), len(turns))


def _warm_up(each: _Turns, take: Callable[[_Turns, int, int], None]) -> float:
    """The first call, checked, and WARMUP more; seconds per iteration, rewriting included."""
    each.entrant.begin()
    each.entrant.prepare(0)()
    each.check()
    if each.wrong:
        return 0.0
    half = WARMUP // 2
    take(each, half, 1)
    each.warmup += half
    began = time.monotonic()
    take(each, WARMUP - half, 1)
    each.warmup += WARMUP - half
    return (time.monotonic() - began) / (WARMUP - half)


def _plan(
    turns: Mapping[str, _Turns],
    paces: Mapping[str, float],
    comm: MPI.Intracomm,
    asked: Measurement,
    cost: float,
) -> int:
    """Decide, on rank 0 for all, how often each is called; the size of a group."""
    warm = {name: _seconds(each.batches) for name, each in turns.items()}
    group = max(group_size(float(np.median(each, axis=0).min()), cost) for each in warm.values())
    planned = {}
    for name, each in warm.items():
        seconds = paces[name] + (group - 1) * float(np.median(each.max(axis=1)))
        fitting = math.ceil(asked.time_cap / max(seconds, 1e-9))
        planned[name] = min(asked.max_iterations, max(asked.min_iterations, fitting))
    decided: tuple[int, dict[str, int]] = comm.bcast((group, planned), root=0)
    group, planned = decided
    for name, turn in turns.items():
        turn.planned, turn.step = planned[name], math.ceil(planned[name] / ROUNDS)
    return group


def _enough(turns: Mapping[str, _Turns], asked: Measurement, deadline: float) -> bool:
    """Whether the next round is the last."""
    if min(each.done for each in turns.values()) < asked.min_iterations:
        return False
    return time.monotonic() > deadline or all(is_narrow(each.timed) for each in turns.values())
