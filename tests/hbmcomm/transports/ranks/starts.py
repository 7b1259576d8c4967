"""Rank program: signals in calls that start operations, or wait for them. For two ranks.

A handler's exception comes before the operation has started, or after the call: then the result is
in a list that a function in C adds it to. So each rank knows whether it has started, and all ranks
start the same operations.
"""

import contextlib
import ctypes
import gc
import itertools
import operator
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from hbmcomm.transports.native import lib
from hbmcomm.transports.requests import in_flight
from tests.hbmcomm.ranks.promising import keep, promise

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SHORT, LONG = 8, 1 << 18  # of float32: 32 B and 1 MiB
STRIDE = 23  # instructions of Python from one that is interrupted to the next
LOST = 200  # requests
MOST_BYTES = 64 << 20  # by which a process may grow that loses 400 MiB of buffers
HERE = str(Path(hbmcomm.__file__).parent)
REQUESTED = partial(ctypes.pythonapi.PyErr_SetInterruptEx, signal.SIGINT)
"""A function in C that returns 0: the handler runs at the next line of Python, wherever that is."""


class Root:
    """Rank 0; a signal comes when a start reads it."""

    __index__ = REQUESTED


signal.signal(signal.SIGINT, signal.default_int_handler)
has_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
direct = Communicator(WORLD, "regular", "direct")
comms = [direct, *([Communicator(WORLD, "regular", "hierarchical")] if has_threads else [])]


def interrupted(*calls: Callable[[], Any]) -> list[Any]:
    """What calls returned with a signal pending, up to the one before which it came."""
    results: list[Any] = []
    with contextlib.suppress(KeyboardInterrupt):
        results.extend(map(operator.call, calls))
        raise AssertionError("no KeyboardInterrupt")
    return results


def interrupted_at(number: int, call: Callable[[], Any]) -> tuple[list[Any], bool]:
    """The same with an exception at an instruction of hbmcomm's, and whether it came so far."""
    results: list[Any] = []
    left = itertools.count(number, -1)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and next(left) == 0:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        results.extend(map(operator.call, (call,)))
    except KeyboardInterrupt:
        return results, True
    finally:
        sys.settrace(None)
    return results, False


class Start:
    """A way to start a sum or a broadcast, again and again."""

    def __init__(self, comm: Any, form: str, count: int, make: Callable[..., Any]) -> None:
        self.x, self.y = make(count, "float32"), make(count, "float32")
        self.form, self.number = form, 0
        self.is_sum = form in ("arrays", "lists", "plan")
        self.is_broadcast = form in ("array", "packed", "packing plan")
        two_blocks = MPI.FLOAT.Create_vector(2, count // 4, count // 2).Commit()
        sends, takes = [self.x, MPI.FLOAT], [self.y, MPI.FLOAT]
        packed, whole = [self.y, 1, two_blocks], ([self.x, MPI.BYTE], [self.y, MPI.BYTE])
        calls: dict[str, Callable[[], Any]] = {
            "arrays": partial(comm.Iallreduce, self.x, self.y),
            "array": partial(comm.Ibcast, self.y, 0),
            "lists": partial(comm.Iallreduce, sends, takes),
            "packed": partial(comm.Ibcast, packed, 0),
            "by MPI": partial(comm.Iallreduce, *whole, MPI.BAND),
        }
        plans: dict[str, Callable[[], Any]] = {
            "plan": partial(comm.Allreduce_init, self.x, self.y),
            "packing plan": partial(comm.Bcast_init, packed, 0),
        }
        self.plan = plans[form]() if form in plans else None
        self.start: Callable[[], Any] = self.plan.Start if self.plan is not None else calls[form]
        self.signalled = partial(comm.Ibcast, self.y, Root())  # for the form "array"

    def fill(self) -> None:
        self.number += 1
        self.x[:] = self.number + (RANK if self.is_sum else 0)
        self.y[:] = self.number if RANK == 0 and self.is_broadcast else -1

    def complete(self, results: list[Any]) -> None:
        """Start it where that has not happened yet, and see that it is right."""
        (request,) = results or [self.start()]
        (request if self.plan is None else self.plan).Wait()
        wanted = 1 + 2 * self.number if self.is_sum else self.number
        assert (self.y[: self.y.size // 4] == wanted).all(), (
            f"{self.form}: {self.y[:4]} and not {wanted}"
        )


FORMS = ("arrays", "array", "lists", "packed", "by MPI", "plan", "packing plan")


def all_starts() -> list[Start]:
    return [
        Start(comm, form, count, make)
        for comm in comms
        for form in FORMS
        for count, make in ((SHORT, np.empty), (LONG, direct.empty))
    ]


@promise
def a_start_with_a_signal_pending_has_happened_or_not() -> None:
    for beginning in all_starts():
        for late in range(RANKS):
            beginning.fill()
            WORLD.Barrier()
            if late == RANK:
                beginning.complete(interrupted(REQUESTED, beginning.start)[1:])
            else:
                beginning.complete([])
    assert not lib.hbm_in_flight()


@promise
def an_exception_at_any_instruction_of_a_start_comes_before_it() -> None:
    for comm in comms:
        for form in FORMS:
            beginning = Start(comm, form, SHORT, np.empty)
            for number in itertools.count(RANK, STRIDE):
                beginning.fill()
                results, came = interrupted_at(number, beginning.start)
                assert not (came and results)
                beginning.complete(results)
                if not WORLD.allreduce(came, MPI.LOR):
                    break
    assert not lib.hbm_in_flight()


@promise
def an_exception_at_any_instruction_of_a_wait_leaves_an_operation_that_can_be_waited_for() -> None:
    """Also where the core has returned and Python has not noted it: the number serves again."""
    x, y, z = np.ones(LONG), np.zeros(LONG), np.zeros(LONG)
    for comm in comms:
        for number in itertools.count():
            y[:] = z[:] = 0
            first = comm.Iallreduce(x, y)
            _, came = interrupted_at(number, first.Wait)
            second = comm.Iallreduce(x, z)  # in the memory of the first, where that is complete
            first.Wait()
            assert (y == RANKS).all() and first.Test()
            second.Wait()
            assert (z == RANKS).all()
            if not WORLD.allreduce(came, MPI.LOR):
                break
    assert not lib.hbm_in_flight()


LOSING = ("arrays", "array", "lists", "plan")
"""The forms of which a request or plan is lost; a signal takes that of "array"."""


def lost(comm: Any, form: str, make: Callable[..., Any]) -> None:
    """Start an operation on arrays that nobody but the library has afterwards."""
    beginning = Start(comm, form, LONG, make)
    beginning.fill()
    if form != "array" or not interrupted(beginning.signalled):
        beginning.start()


@promise
def buffers_of_a_start_that_was_interrupted_stay_until_all_ranks_are_through() -> None:
    """Rank 0 loses its request, or plan, and makes other arrays before rank 1 starts."""
    for comm in comms:
        for form in LOSING:
            for make in (direct.empty, np.empty):
                WORLD.Barrier()
                if RANK:
                    WORLD.recv(source=0)
                    beginning = Start(comm, form, LONG, make)
                    beginning.fill()
                    beginning.complete([])
                else:
                    lost(comm, form, make)
                    gc.collect()
                    others = [make(LONG, "float32") for _ in range(4)]
                    for other in others:
                        other[:] = -7
                    WORLD.send(None, 1)
                comm.Barrier()
                assert RANK or all((other == -7).all() for other in others)


@promise
def starts_that_were_interrupted_leave_no_memory() -> None:
    """All ranks start the same operations, and lose all requests."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for form in LOSING:
        for _ in range(LOST // len(LOSING)):
            lost(direct, form, np.empty)
            direct.Barrier()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < MOST_BYTES, f"{grown >> 20} MiB more"
    assert len(in_flight) < 4, f"{len(in_flight)} operations are kept"
    assert not lib.hbm_in_flight()


if __name__ == "__main__":
    keep()
