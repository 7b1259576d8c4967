"""Rank program: random sequences of calls at random moments, each checked bit for bit.

Blocking, nonblocking and persistent calls on several communicators, and messages of MPI, several in
flight at once; ranks start and complete them in different orders, are late, and are interrupted.
Usage: stress.py TRANSPORT SECONDS [SEED]. Half an hour by hand: mpiexec -n 3 python stress.py
direct 1800. Prints the seed at the start, the number of calls at the end; every rank that finds
something wrong says which call it was and ends all ranks.
"""

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from drawn.attempt import Attempt
from drawn.calls import draw, mpi_can
from drawn.expected import expected
from drawn.flights import Flight, Interrupter, complete, wait
from drawn.interrupted import interrupt
from drawn.sequence import Event, reordered, segments
from mpi4py import MPI
from numpy.random import Generator

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SEGMENTS = 12  # of a round, between two looks at the clock
NUMBERS = 1000  # of events, more than a round has
LATEST = 0.002  # seconds by which a rank may be late
KEPT = 8  # earlier calls with memory still in use, so that an arena has holes
LONGEST = 1 << 20  # bytes of a message between two ranks
INTERRUPTED = 0.15  # of the rounds


@dataclass
class Planned:
    """A persistent call, and the last start of it."""

    attempt: Attempt
    plan: Any
    flight: Flight | None = None


class Part:
    """One rank's part in the sequences of a seed."""

    def __init__(self, transport: str, seed: int) -> None:
        self.seed = seed
        one = Communicator(WORLD, "regular", transport)
        self.comms = [
            one,
            one.Dup(),
            one.Split(RANK % 2 if RANKS > 2 else 0, -RANK),
            one.Split(min(RANK, 1), RANK),
            Communicator(WORLD, "regular", "mpi"),
        ]
        self.leaders = [each.bcast(RANK) for each in self.comms]
        self.plans: dict[tuple[int, int], Planned] = {}
        self.kept: list[Attempt] = []
        self.interrupter = Interrupter()
        self.calls = 0

    def round(self, number: int) -> None:
        """Some segments; their events follow from the seed and the number alone."""
        rng = np.random.default_rng([self.seed, number])
        own = np.random.default_rng([self.seed, number, RANK])
        flights: list[Flight] = []
        for segment in segments(rng, number * NUMBERS, len(self.comms), SEGMENTS):
            new = []
            for event in reordered(own, segment):
                moving_on()
                if own.random() < 1 / 3:
                    time.sleep(own.uniform(0, LATEST))
                if own.random() < 0.2:
                    some = [each for each in flights if own.random() < 0.5]
                    complete([each for each in some if not each.has_landed], own, self.interrupter)
                new += self._do(event, own)
            flights = [each for each in flights if not each.has_landed] + new
        complete([each for each in flights if not each.has_landed], own, self.interrupter)
        if rng.random() < INTERRUPTED:
            moving_on()
            interrupt(self.comms[0], int(rng.integers(2**31)), self.interrupter)

    def _do(self, event: Event, own: Generator) -> list[Flight]:
        """Do what an event says; what is in flight then."""
        self.calls += 1
        match event.action:
            case "message":
                return self._message(event.number)
            case "call":
                attempt = self._attempt(event, own)
                attempt.run()
                self._check(attempt, event.number)
                return []
            case "start":
                attempt = self._attempt(event, own, "nonblocking")
                attempt.fill()
                return [Flight(attempt.start(), lambda: self._check(attempt, event.number))]
        planned = self._planned(event, own)
        if event.action == "make":
            return []
        attempt = planned.attempt
        attempt.call = replace(attempt.call, seed=event.number)  # other contents each time
        attempt.fill()
        if event.action == "begin":
            planned.plan.Start()
            planned.flight = Flight(planned.plan, lambda: self._check_plan(planned, event.number))
            return [planned.flight]
        if callable(planned.plan):
            planned.plan()
        else:
            planned.plan.Start()
            planned.plan.Wait()
        self._check_plan(planned, event.number)
        return []

    def _planned(self, event: Event, own: Generator) -> Planned:
        """The plan of an event, not in flight."""
        key = event.comm, event.plan
        old = self.plans.get(key)
        if old and old.flight and not old.flight.has_landed:
            wait(old.plan, own, self.interrupter)
            old.flight.land()
        if old and event.action != "make":
            return old
        if old:
            old.plan.Free()
            self._keep(old.attempt, own)
        attempt = self._attempt(event, own, "persistent")
        self.plans[key] = Planned(attempt, attempt.plan())
        return self.plans[key]

    def _attempt(self, event: Event, own: Generator, way: str | None = None) -> Attempt:
        """The call of an event, in memory of any of the communicators."""
        comm = self.comms[event.comm]
        rng = np.random.default_rng([self.seed, event.number, self.leaders[event.comm]])
        call = draw(rng, comm.size, comm.transport, large=0.02, way=way)
        while comm.transport == "mpi" and not mpi_can(call):
            call = draw(rng, comm.size, comm.transport, large=0.02, way=way)
        return Attempt(call, comm, self.comms[int(own.integers(len(self.comms)))])

    def _check(self, attempt: Attempt, number: int) -> None:
        self._check_result(attempt, number)
        self._keep(attempt, np.random.default_rng([number, RANK]))

    def _check_plan(self, planned: Planned, number: int) -> None:
        self._check_result(planned.attempt, number)

    def _check_result(self, attempt: Attempt, number: int) -> None:
        if text := attempt.wrong(expected(attempt.call, attempt.rank)):
            what = f"event {number} of seed {self.seed}"
            by = f"{attempt.comm.transport} on {attempt.comm.size} ranks"
            raise AssertionError(f"{what}: {text}: {attempt.call} by {by}")

    def _keep(self, attempt: Attempt, own: Generator) -> None:
        attempt.free()
        self.kept.append(attempt)
        if len(self.kept) > KEPT:
            del self.kept[int(own.integers(KEPT))]

    def _message(self, number: int) -> list[Flight]:
        """One rank sends another some bytes."""
        rng = np.random.default_rng([self.seed, number])
        to, source = (int(each) for each in rng.permutation(max(RANKS, 2))[:2])
        data = np.full(int(rng.integers(LONGEST)) >> int(rng.integers(16)), number % 251, "u1")
        tag = number % 32000
        if source == RANK and to < RANKS:
            return [Flight(WORLD.Isend(data, to, tag), data.size.__index__)]
        if to != RANK or source >= RANKS:
            return []
        room = np.zeros_like(data)

        def check() -> None:
            assert (room == data).all(), f"message {number} of seed {self.seed}"

        return [Flight(WORLD.Irecv(room, source, tag), check)]


def stress(transport: str, seconds: float, seed: int) -> int:
    """How many calls were right on this rank."""
    end, number, part = time.monotonic() + seconds, 0, Part(transport, seed)
    while WORLD.bcast(time.monotonic() < end):
        part.round(number)
        number += 1
    for planned in part.plans.values():
        planned.plan.Free()
    for comm in part.comms:
        comm.Free()
    return part.calls


if __name__ == "__main__":
    name, duration, *rest = sys.argv[1:]
    chosen = WORLD.bcast(int(rest[0]) if rest else time.time_ns() % 10**9)
    if WORLD.rank == 0:
        say(f"seed {chosen}")
    calls = stress(name, float(duration), chosen)
    if WORLD.rank == 0:
        say(f"{calls} calls right on {WORLD.size} ranks")
