"""A random legal program of a seed and a number, and one rank's part in it.

`rehearse` makes all its calls in order, blocking, by mpi4py alone, and compares the results with
NumPy's; `perform` makes them on Communicators, each rank at its own pace. So every result is
compared bit for bit with mpi4py's.
"""

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from drawn import pages
from drawn.attempt import GUARD, Attempt
from drawn.calls import DERIVED_FORMS, OWN, TO_ROOT, Call, Layout, draw, dtype_of, mpi_can, on_pages
from drawn.expected import expected
from drawn.flights import Flight, Interrupter, complete, start, wait
from drawn.interrupted import interrupt
from drawn.objects import late_call, object_call
from drawn.sequence import WORLD, Event, reordered, segments
from drawn.watch import Watch
from mpi4py import MPI
from numpy.random import Generator

from hbmcomm import Communicator
from hbmcomm.transports.plans import DirectPlan

ALL = MPI.COMM_WORLD
RANK, RANKS = ALL.rank, ALL.size

SEGMENTS = 14  # of a program
LATEST = 0.002  # seconds by which a rank may be late
KEPT = 8  # earlier calls with memory still in use, so that an arena has holes
LONGEST = 1 << 20  # bytes of a message between two ranks
INTERRUPTED = 0.8  # of the programs with interrupts
HANDED = 0.5  # of the programs without interrupts, which come to the main thread
LARGE = 0.03  # of the calls move a MiB or more
MANY = 96  # communicators with operations in flight at the same time
MOST = 128  # operations in flight on them
OFTEN = 0.4  # of the programs of odd seeds may have so many: they take a second
"""The core seldom looks for requests that are left after that, so even seeds have none."""
STALL = (0.005, 0.05)  # seconds of stalls in page faults
EARLY = ("Bcast", "Gather", "Scatter", "Reduce", "Allreduce", "Scan")
"""Calls that a rank may complete while others are in them."""
IN_STEPS = ("Allreduce", "Reduce_scatter_block", "Scan", "Allgather", "Alltoall")
"""Calls that no rank completes, where they are long, before others have gone on with them."""
LAST_STALL = (0.02, 0.2)  # the same in the last call on a communicator
SMALL_ENTRIES = (1, 3, 8, 24, 4096)
LARGE_ENTRIES = (65536 + 8, (1 << 18) + 8, 1 << 19, 600_000, (1 << 20) + 8, (4 << 20) + 8)
SWITCHES = (0.005, 0.00001)  # seconds until Python lets another thread run
FAR = str(2**40)
LOCAL = ("dropped", "errors")
"""Features that leave a communicator without the other ranks."""
OPERATIONS = {"user_operations", "ordered_operations", "empty_entries", "large_entries"}
"""Not in a program with interrupts: an exception in an operation ends all ranks in mpi4py too."""

TUNING = {
    "HBMCOMM_EAGER_BYTES": ("0", "2048", "32768"),
    "HBMCOMM_SHORT_BYTES": ("0", "8192", "32768"),
    "HBMCOMM_FOLD_BYTES": ("0", "4096", "1048576"),
    "HBMCOMM_PAIR_BYTES": ("0", "49152", FAR),
    "HBMCOMM_PIECE_BYTES": ("1024", "4096", "65536", "262144"),
    "HBMCOMM_FAN_IN": ("2", "8"),
    "HBMCOMM_PUSH_RANKS": ("0", "8"),
    "HBMCOMM_SPIN_US": ("0", "50"),
    "HBMCOMM_STREAM_BYTES": ("0", FAR),
}
"""Thresholds of the core, which rank 0 sets for all."""
FETCHES = ("HBMCOMM_FETCH_BYTES", "HBMCOMM_FETCH_IDLE_BYTES")
"""A peer's process_vm_readv fails on a page that only this process can make readable."""


class ProgramError(Exception):
    """What ends a with block."""


@dataclass
class Place:
    """The communicator of a slot, and mpi4py's of the same ranks.

    Attributes:
        leader: the least rank in MPI.COMM_WORLD; ranks of other communicators in the same slot draw
            other calls.
        transport: that of its nonblocking and persistent calls, or "mpi".
    """

    plain: MPI.Intracomm
    leader: int
    transport: str
    comm: Any = None


@dataclass
class Planned:
    """A persistent call, and the last start of it."""

    attempt: Attempt
    plan: Any
    flight: Flight | None = None


@dataclass
class Part:
    """One rank's part in the programs of a seed."""

    transport: str
    seed: int
    features: frozenset[str]
    watch: Watch
    interrupter: Interrupter = field(default_factory=Interrupter)
    calls: int = 0
    threads: tuple[ThreadPoolExecutor, ...] = (ThreadPoolExecutor(1), ThreadPoolExecutor(1))
    pool: list[Any] = field(default_factory=list)

    def program(self, number: int) -> None:
        """Rehearse and perform a program."""
        rng = np.random.default_rng([self.seed, number])
        for variable, value in self._tuning(rng).items():
            os.environ[variable] = value
        features = self.features - (OPERATIONS if rng.random() < 0.5 else {"interrupts"})
        features -= set() if self.transport in OWN else {"interrupts"}  # MPI's calls go on waiting
        has_many = rng.random() < OFTEN and self.seed % 2 == 1
        features -= set() if has_many else {"many_in_flight"}
        is_handed = rng.random() < HANDED and "interrupts" not in features
        features -= set() if is_handed else {"handed"}
        program = Program(self, number, segments(rng, features, SEGMENTS), features)
        program.rehearse()
        program.perform()
        program.end()

    def _tuning(self, rng: Generator) -> dict[str, str]:
        tuned = "tuning" in self.features and rng.random() < 0.5
        values = {
            name: str(rng.choice(choices)) if tuned else "" for name, choices in TUNING.items()
        }
        slow = "stalls" in self.features or rng.random() < 0.5
        return values | dict.fromkeys(FETCHES, FAR if slow else "")

    def leave_all(self) -> None:
        """End while others may still be in the last call, or free what there is."""
        if "exit" not in self.features:
            for comm in self.pool:
                comm.Free()
            return
        Program(self, 0, [], self.features).exit()

    def many(self) -> list[Any]:
        """Communicators of all ranks that stay until the end."""
        if not self.pool:
            one = Communicator(ALL, "regular", self.transport)
            self.pool = [one, *(one.Dup() for _ in range(MANY - 1))]
        return self.pool


class Program:
    """One rank's part in one program."""

    def __init__(
        self, part: Part, number: int, sequence: list[list[Event]], features: frozenset[str]
    ) -> None:
        self.part, self.number, self.sequence = part, number, sequence
        self.features = features
        self.interrupter = part.interrupter if "interrupts" in features else None
        self.places: dict[int, Place] = {}
        self.made: dict[int, Place] = {}
        """By the number of the event that makes them."""
        self.plan_calls: dict[int, Call] = {}
        """The call of an event's plan, by the event's number."""
        self.plans: dict[tuple[int, int], Planned] = {}
        self.flights: list[tuple[int, Flight]] = []
        """With the slot of the communicator."""
        self.kept: list[Attempt] = []
        self.later: list[Any] = []
        """Communicators of this rank alone, and arrays, in memory that was in use before."""
        self.duplicates: list[MPI.Intracomm] = []
        """MPI's part of communicators that were dropped."""
        self.own = np.random.default_rng([part.seed, number, RANK])

    def rng(self, *key: int) -> Generator:
        return np.random.default_rng([self.part.seed, self.number, *key])

    def _step(self, words: object) -> None:
        self.part.watch.step(f"{self._name()}: {words}")

    # ---- the calls of events ----

    def _draw(self, rng: Generator, size: int, transport: str, way: str | None = None) -> Call:
        features = self.features
        entries = SMALL_ENTRIES if "user_operations" in features else ()
        entries += (0,) if "empty_entries" in features else ()
        entries += LARGE_ENTRIES if "large_entries" in features else ()
        derived = DERIVED_FORMS if "derived" in features and way != "persistent" else ()
        while True:
            large = LARGE if "large" in features else 0.0
            call = draw(rng, size, transport, large, derived, way, entries)
            if call.entry is not None and "ordered_operations" not in features:
                call = replace(call, op="commutative")
            if rng.random() < 0.2 and "read_only" in features and transport in OWN:
                call = _given_in(call, "read-only")
            if way is None and not self._is_on(call.way):
                call = replace(call, way="blocking")
            if mpi_can(call) or (transport in OWN and call.entry is None):
                return call  # MPI does some calls with operations of the program

    def _is_on(self, way: str) -> bool:
        feature = "persistent" if way == "planned" else way
        return feature in ("blocking", "keywords") or feature in self.features

    def _call(self, event: Event, way: str | None = None) -> Call:
        place = self.places[event.comm]
        rng = self.rng(event.number, place.leader)
        return self._draw(rng, place.plain.size, place.transport, way)

    def _last_call(self, event: Event) -> Call:
        """Mostly a long one from private memory, which some ranks complete before others."""
        place = self.places[event.comm]
        rng = self.rng(event.number, place.leader)
        is_long = rng.random() < 0.8
        while True:
            way = str(rng.choice(["blocking", "nonblocking"]))
            way = way if self._is_on(way) else "blocking"
            call = self._draw(rng, place.plain.size, place.transport, way)
            nbytes = 8 * call.count if call.entry is None else call.entry * call.count
            if not is_long or (nbytes > 1 << 15 and (call.name in EARLY or rng.random() < 0.2)):
                break
        if rng.random() < 0.7:
            layouts = (Layout("private", call.gives[0].form),) * call.ranks
            call = replace(call, gives=layouts, takes=layouts)
        return call

    # ---- by mpi4py ----

    def rehearse(self) -> None:
        """Make all calls by mpi4py, in order and blocking, and see that NumPy gives the same."""
        plans: dict[tuple[int, int], Call] = {}
        for segment in self.sequence:
            for event in segment:
                self._rehearse(event, plans)
        self.places = {}

    def _rehearse(self, event: Event, plans: dict[tuple[int, int], Call]) -> None:
        self._step(f"mpi4py's result of {event}")
        match event.action:
            case "new":
                self.places[event.comm] = self.made[event.number] = self._plain(event)
            case "call" | "start":
                way = "nonblocking" if event.action == "start" else None
                self._try_mpi(self._call(event, way), self.places[event.comm].plain, event)
            case "make" | "run" | "begin":
                self._rehearse_plan(event, plans)
            case "leave":
                self._try_mpi(self._last_call(event), self.places[event.comm].plain, event)
                for key in [key for key in plans if key[0] == event.comm]:
                    del plans[key]
            case "objects":
                object_call(self.places[event.comm].plain, self._object_rng(event))
            case "late objects":
                plain = self.places[event.comm].plain
                late_call(plain, plain, self._object_rng(event))
            case "many":
                total = self._many_total(event)
                first = self._firsts(event, total)
                for index in range(total):
                    self._try_mpi(self._one_of_many(event, index, index in first), ALL, event)
            case "threads":
                for calls in self._threads_calls(event):
                    for call in calls:
                        self._try_mpi(call, ALL, event)

    def _object_rng(self, event: Event) -> Generator:
        return self.rng(event.number, self.places[event.comm].leader)

    def _rehearse_plan(self, event: Event, plans: dict[tuple[int, int], Call]) -> None:
        key = event.comm, event.plan
        if event.action == "make" or key not in plans:
            plans[key] = self._call(event, "persistent")
        self.plan_calls[event.number] = plans[key]
        if event.action != "make":
            call = replace(plans[key], seed=event.number)
            self._try_mpi(call, self.places[event.comm].plain, event)

    def _try_mpi(self, call: Call, plain: MPI.Intracomm, event: Event) -> None:
        call = replace(call, way="blocking")
        if not mpi_can(call) or call.name == "Barrier":
            return
        if call.name == "Bcast":  # MPICH 5.0.2 writes to the root's buffer what is there
            call = _given_in(call, "private")
        self._step(f"mpi4py's result of {event}, {call}")
        attempt = Attempt(call, plain)
        attempt.run()
        self._check(attempt, f"by mpi4py alone, {event}")
        attempt.free()

    def _plain(self, event: Event) -> Place:
        """mpi4py's communicator of the same ranks as that which an event makes."""
        parent = ALL if event.parent == WORLD else self.places[event.parent].plain
        transport = self.part.transport
        if event.parent != WORLD:
            transport = self.places[event.parent].transport
        if event.derivation == "mpi":
            parent, transport = ALL, "mpi"
        elif event.derivation == "self":
            parent, transport = MPI.COMM_SELF, "direct"
        plain = _derive(parent, event.derivation)
        return Place(plain, min(plain.group.Translate_ranks(None, ALL.group)), transport)

    # ---- on communicators ----

    def perform(self) -> None:
        """Make all calls; their order, their waits and their moments are this rank's own."""
        for segment in self.sequence:
            new: list[tuple[int, Flight]] = []
            for event in reordered(self.own, segment):
                self._step(event)
                self._delay()
                if self.own.random() < 0.2:
                    self._complete([pair for pair in self.flights if self.own.random() < 0.5])
                self.part.calls += 1
                new = self._on_a_thread(lambda event=event, new=new: self._do(event, new))
            self.flights = _in_flight(self.flights) + new
        self._step("the last waits")
        self._complete(self.flights)

    def _on_a_thread(self, act: Callable[[], Any]) -> Any:
        """Do something on this thread, or have another do it and wait for that."""
        is_main = threading.current_thread() is threading.main_thread()
        if "handed" not in self.features or not is_main or self.own.random() < 0.5:
            return act()
        threads = self.part.threads
        return threads[int(self.own.integers(len(threads)))].submit(act).result()

    def _delay(self) -> None:
        if "late" in self.features and self.own.random() < 1 / 3:
            time.sleep(self.own.uniform(0, LATEST))
        if "pauses" in self.features and self.own.random() < 0.1:
            pages.pause(self.own.uniform(0, 0.001), self.own.uniform(0, 0.02))

    def _complete(self, flights: list[tuple[int, Flight]]) -> None:
        left = [flight for _, flight in flights if not flight.has_landed]
        self._on_a_thread(lambda: complete(left, self.own, self.interrupter))

    def _do(self, event: Event, new: list[tuple[int, Flight]]) -> list[tuple[int, Flight]]:
        """Do what an event says; what this segment has in flight then."""
        match event.action:
            case "new":
                self._make(event)
            case "message":
                new += [(event.comm, flight) for flight in self._message(event.number)]
            case "call":
                attempt = self._attempt(self._call(event), event)
                attempt.run()
                self._check_and_keep(attempt, event)
            case "start":
                attempt = self._attempt(self._call(event, "nonblocking"), event)
                attempt.fill()
                done = self._checking(attempt, event)
                request = start(attempt.starting(), self.own, self.interrupter)
                new.append((event.comm, Flight(request, done)))
            case "objects":
                object_call(self.places[event.comm].comm, self._object_rng(event))
            case "late objects":
                place = self.places[event.comm]
                late_call(place.comm, place.plain, self._object_rng(event))
            case "many":
                self._many(event)
            case "threads":
                self._threads(event)
            case "leave":
                pairs = [*self.flights, *new]
                self._complete([pair for pair in pairs if pair[0] == event.comm])
                self.flights, new, pairs = _in_flight(self.flights), _in_flight(new), []
                self._leave(event)
            case "make" | "run" | "begin":
                new += [(event.comm, flight) for flight in self._planned(event)]
        return new

    def _make(self, event: Event) -> None:
        place = self.made[event.number]
        parent = ALL if event.parent == WORLD else self.places[event.parent].comm
        match event.derivation:
            case "wrapped":
                place.comm = Communicator(ALL, "regular", self.part.transport)
            case "mpi":
                place.comm = Communicator(ALL, "regular", "mpi")
            case "self":
                place.comm = Communicator(MPI.COMM_SELF, "regular", "direct")
            case _:
                place.comm = _derive(parent, event.derivation)
        self.places[event.comm] = place
        if self.own.random() < 0.5:
            self._set_aside(place)

    def _attempt(self, call: Call, event: Event) -> Attempt:
        """A call in memory of any of the communicators, which may be slow at its first access."""
        comm, own = self.places[event.comm].comm, self.own
        slow = "stalls" in self.features and own.random() < 0.03
        if slow:
            call = on_pages(call, comm.rank)
        slots = list(self.places)
        attempt = Attempt(call, comm, self.places[int(own.choice(slots))].comm)
        if slow:
            self._slow(attempt, own.uniform(*STALL))
        return attempt

    def _slow(self, attempt: Attempt, seconds: float) -> None:
        is_given = attempt.call.name == "Bcast" or self.own.random() < 0.2
        memory = attempt.give if is_given else attempt.take

        def make_slow() -> None:
            if memory.pages:
                memory.pages.make_slow(self.own, seconds)

        attempt.make_slow = make_slow

    def _checking(self, attempt: Attempt, event: Event) -> Callable[[], None]:
        return lambda: self._check_and_keep(attempt, event)

    def _check_and_keep(self, attempt: Attempt, event: Event) -> None:
        self._check(attempt, event)
        self._keep(attempt)

    def _check(self, attempt: Attempt, event: object) -> None:
        if text := attempt.wrong(expected(attempt.call, attempt.rank)):
            raise AssertionError(self._words(event, text, attempt))

    def _words(self, event: object, text: str, attempt: Attempt) -> str:
        return f"{self._name()}, {event}: {text}: {attempt.call} on rank {attempt.rank}"

    def _keep(self, attempt: Attempt) -> None:
        attempt.free()
        attempt.comm = MPI.COMM_NULL  # its memory stays, not the communicator
        attempt.wipe()
        self.kept.append(attempt)
        if len(self.kept) > KEPT:
            self._see_untouched(self.kept.pop(int(self.own.integers(KEPT))))

    def _see_untouched(self, attempt: Attempt) -> None:
        assert attempt.is_wiped(), f"memory that no call uses was written, {self._name()}"

    def _name(self) -> str:
        return f"seed {self.part.seed}, program {self.number}"

    def _set_aside(self, place: Place) -> None:
        """An array in the arena that no call may write to."""
        if place.transport != "mpi":
            array = place.comm.empty(1 << int(self.own.integers(12, 22)), "u1")
            array[:] = GUARD
            self.later.append(array)

    def _message(self, number: int) -> list[Flight]:
        """One rank sends another some bytes."""
        rng = self.rng(number)
        to, source = (int(rank) for rank in rng.permutation(max(RANKS, 2))[:2])
        data = np.full(int(rng.integers(LONGEST)) >> int(rng.integers(16)), number % 251, "u1")
        tag = number % 32000
        if source == RANK and to < RANKS:
            return [Flight(ALL.Isend(data, to, tag), data.size.__index__)]
        if to != RANK or source >= RANKS:
            return []
        room = np.zeros_like(data)

        def check() -> None:
            assert (room == data).all(), f"message {number}, {self._name()}"

        return [Flight(ALL.Irecv(room, source, tag), check)]

    # ---- persistent calls ----

    def _planned(self, event: Event) -> list[Flight]:
        """Make, run or start the plan of an event."""
        key = event.comm, event.plan
        planned = self.plans.get(key)
        if planned and planned.flight and not planned.flight.has_landed:
            wait(planned.plan, self.own, self.interrupter)
            planned.flight.land()
        if planned is None or event.action == "make":
            if planned:
                planned.plan.Free()
                self._keep(planned.attempt)
            attempt = self._attempt(self.plan_calls[event.number], event)
            planned = self.plans[key] = Planned(attempt, attempt.plan())
        if event.action == "make":
            return []
        attempt, plan = planned.attempt, planned.plan
        attempt.call = replace(attempt.call, seed=event.number)  # other contents each time
        attempt.fill()
        if event.action == "begin":
            # mpi4py's own plan may be started or not where its Start raises
            interrupter = self.interrupter if isinstance(plan, DirectPlan) else None
            start(plan.Start, self.own, interrupter)
            planned.flight = Flight(plan, lambda: self._check(attempt, event))
            return [planned.flight]
        if callable(plan) and self.own.random() < 0.5:
            plan()
        else:
            plan.Start()
            plan.Wait()
        self._check(attempt, event)
        return []

    # ---- many in flight ----

    def _many_total(self, event: Event) -> int:
        return int(self.rng(event.number).integers(60, MOST))

    def _firsts(self, event: Event, total: int) -> list[int]:
        """The calls that all ranks wait for before they start the rest."""
        rng = self.rng(event.number, 0, 0)
        drawn = rng.permutation(min(total, MANY))[: int(rng.integers(1, 9))]
        return [int(index) for index in drawn]

    def _one_of_many(self, event: Event, index: int, is_first: bool) -> Call:
        """Mostly a barrier; one that is waited for first mostly a call of several steps, for which
        ranks need each other again after they have started it."""
        rng = self.rng(event.number, index)
        has_steps, is_barrier = is_first and rng.random() < 0.7, rng.random() < 0.85
        while True:
            call = self._draw(rng, RANKS, self.part.transport, "nonblocking")
            if has_steps:
                nbytes = call.count * dtype_of(call.dtype).itemsize
                if call.name in IN_STEPS and nbytes > 1 << 16 and mpi_can(call):
                    return call
                continue
            if is_barrier:
                return replace(call, name="Barrier", dtype="B", count=0, entry=None)
            if call.entry in (None, *SMALL_ENTRIES) and call.count < 5000 and mpi_can(call):
                return call

    def _many(self, event: Event) -> None:
        """More calls in flight than any list holds; some are waited for before others start."""
        own, total = self.own, self._many_total(event)
        on_own = min(total, MANY)
        """So many are the first on their communicators: they may start in any order."""
        first = self._firsts(event, total)
        order = [int(index) for index in own.permutation(on_own)]
        if own.random() < 0.5:
            order.sort()
        order += list(range(on_own, total))
        if self.rng(event.number, 0, 1).integers(RANKS) == RANK or own.random() < 0.2:
            early, rest = order, []
        else:
            early = sorted({*first, *order[: int(own.integers(4))]})
            rest = [index for index in order if index not in early]
            time.sleep(own.uniform(0, 0.02))
        flights = {index: self._start_one(event, index, index in first) for index in early}
        complete([flights[index] for index in first], own, self.interrupter)
        flights |= {index: self._start_one(event, index, False) for index in rest}
        left = [flight for flight in flights.values() if not flight.has_landed]
        complete(left, own, self.interrupter)

    def _start_one(self, event: Event, index: int, is_first: bool) -> Flight:
        comm = self.part.many()[index % MANY]
        attempt = Attempt(self._one_of_many(event, index, is_first), comm)
        attempt.fill()
        return Flight(attempt.start(), self._checking(attempt, event))

    # ---- threads ----

    def _threads_calls(self, event: Event) -> list[list[Call]]:
        """The calls of each thread."""
        rng = self.rng(event.number)
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            return []
        return [
            [self._thread_call(rng) for _ in range(int(rng.integers(1, 13)))]
            for _ in range(int(rng.integers(2, 4)))
        ]

    def _thread_call(self, rng: Generator) -> Call:
        """Intel MPI runs functions of the program with its one lock, while another thread may wait
        for that lock with Python's: a program of mpi4py alone hangs, too."""
        is_nonblocking = self._is_on("nonblocking") and rng.random() < 0.5
        way = "nonblocking" if is_nonblocking else None
        while True:
            call = self._draw(rng, RANKS, self.part.transport, way)
            if call.entry is None or MPI.get_vendor()[0] != "Intel MPI":
                return call

    def _threads(self, event: Event) -> None:
        calls = self._threads_calls(event)
        comms = [Communicator(ALL, "regular", self.part.transport) for _ in calls]
        errors: list[BaseException] = []

        def body(comm: Any, own_calls: list[Call], rng: Generator) -> None:
            try:
                self._calls_in_a_thread(event, comm, own_calls, rng)
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=body, args=args)
            for args in zip(comms, calls, self.own.spawn(len(calls)), strict=True)
        ]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(float(self.own.choice(SWITCHES)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
        if errors:
            raise errors[0]
        for comm in comms:
            comm.Free()

    def _calls_in_a_thread(
        self, event: Event, comm: Any, calls: list[Call], rng: Generator
    ) -> None:
        """Nonblocking ones are in flight together, beside those of other threads."""
        flights: list[Flight] = []
        for call in calls:
            attempt = Attempt(call, comm)
            if call.way == "nonblocking":
                attempt.fill()
                flights.append(Flight(attempt.start(), self._checking_alone(attempt, event)))
            else:
                attempt.run()
                self._checking_alone(attempt, event)()
            if rng.random() < 0.4:
                complete([flight for flight in flights if not flight.has_landed], rng, None)
        complete([flight for flight in flights if not flight.has_landed], rng, None)

    def _checking_alone(self, attempt: Attempt, event: Event) -> Callable[[], None]:
        """Looks at a call; its memory is not kept, as `kept` belongs to one thread."""

        def check() -> None:
            self._check(attempt, event)
            attempt.free()

        return check

    # ---- the end of a communicator ----

    def _leave(self, event: Event) -> None:
        """Make the last call on a communicator, then leave it at once, whatever the others do."""
        call, place = self._last_call(event), self.places.pop(event.comm)
        comm, place.comm = place.comm, None
        self._end_plans(event.comm)
        rng = self.rng(event.number, place.leader, 1)
        late = call.root if call.name in TO_ROOT else int(rng.integers(comm.size))
        is_late = comm.rank == late
        attempt = self._last_attempt(call, comm, is_late)
        ways = [way for way in ("freed", *LOCAL, *LOCAL) if way in self.features]
        way = str(rng.choice(ways))
        if way != "freed" and self.own.random() < 0.3:  # each rank in a way of its own
            way = str(self.own.choice([other for other in ways if other != "freed"]))
        try:
            with contextlib.ExitStack() as stack:
                if way == "errors":
                    stack.enter_context(comm)
                attempt.run()
                if way == "errors":
                    raise ProgramError
        except ProgramError:
            pass
        attempt.comm = MPI.COMM_NULL
        if way == "freed":
            comm.Free()
        else:
            self.duplicates.append(MPI.Intracomm.fromhandle(comm.handle))
        del comm, stack
        if self.own.random() < 0.3:
            gc.collect()
        if "reuse" in self.features and not is_late:
            self._reuse()
        self._check_and_keep(attempt, event)

    def _last_attempt(self, call: Call, comm: Any, is_late: bool) -> Attempt:
        stalls = is_late and "stalls" in self.features
        attempt = Attempt(on_pages(call, comm.rank) if stalls else call, comm)
        if stalls:
            self._slow(attempt, self.own.uniform(*LAST_STALL))
        if is_late and "pauses" in self.features and self.own.random() < 0.3:
            pages.pause(self.own.uniform(0, 0.0005), self.own.uniform(*LAST_STALL))
        return attempt

    def _end_plans(self, slot: int) -> None:
        for key in [key for key in self.plans if key[0] == slot]:
            planned = self.plans.pop(key)
            if planned.flight and not planned.flight.has_landed:
                wait(planned.plan, self.own, self.interrupter)
                planned.flight.land()
            if self.own.random() < 0.5:
                planned.plan.Free()
            self._keep(planned.attempt)

    def _reuse(self) -> None:
        """Write to memory that this rank or a peer may have used in the call before."""
        for _ in range(int(self.own.integers(1, 6))):
            self.later.append(Communicator(MPI.COMM_SELF, "regular", "direct"))
        places = list(self.places.values())
        for _ in range(int(self.own.integers(0, 4))):
            self._set_aside(places[int(self.own.integers(len(places)))])

    def exit(self) -> None:
        """Make the last call of all; the process may end right after it."""
        self._step("the last call, before the process ends")
        event = Event("leave", 0, 0)
        comm = Communicator(ALL, "regular", self.part.transport)
        self.places[0] = Place(ALL, 0, self.part.transport, comm)
        call = self._last_call(event)
        attempt = self._last_attempt(call, comm, int(self.rng(2).integers(RANKS)) == RANK)
        attempt.run()
        self._check(attempt, event)

    def end(self) -> None:
        """Leave all communicators; then no rank uses any of them, and MPI's part is freed."""
        self._step("the end of all communicators")
        for slot in sorted(self.places):
            self._end_plans(slot)
            place = self.places.pop(slot)
            if self.rng(slot).random() < 0.5 or "dropped" not in self.features:
                place.comm.Free()
            else:
                self.duplicates.append(MPI.Intracomm.fromhandle(place.comm.handle))
            place.comm = None
        if "interrupts" in self.features and self.rng(0).random() < INTERRUPTED:
            self._step("an interrupt")
            with Communicator(ALL, "regular", self.part.transport) as comm:
                seed, stalls = int(self.rng(1).integers(2**31)), "stalls" in self.features
                interrupt(comm, seed, self.part.interrupter, stalls)
        self._step("MPI's part of all communicators")
        ALL.Barrier()
        for attempt in self.kept:
            self._see_untouched(attempt)
        for item in self.later:
            if isinstance(item, MPI.Comm):
                item.Free()
            else:
                assert (item == GUARD).all(), f"an array in the arena was written, {self._name()}"
        for duplicate in [*self.duplicates, *(place.plain for place in self.made.values())]:
            duplicate.Free()


def _in_flight(pairs: list[tuple[int, Flight]]) -> list[tuple[int, Flight]]:
    return [(slot, flight) for slot, flight in pairs if not flight.has_landed]


def _derive(parent: MPI.Intracomm, derivation: str) -> MPI.Intracomm:
    """A communicator made of another; a Communicator of a Communicator."""
    rank, size = parent.rank, parent.size
    match derivation:
        case "parity":
            return parent.Split(rank % 2 if size > 2 else 0, -rank)
        case "first":
            return parent.Split(min(rank, 1), rank)
        case "reversed":
            return parent.Split(0, -rank)
    return parent.Dup()


def _given_in(call: Call, place: str) -> Call:
    """The call with all that is given in one kind of memory."""
    return replace(call, gives=tuple(Layout(place, layout.form) for layout in call.gives))
