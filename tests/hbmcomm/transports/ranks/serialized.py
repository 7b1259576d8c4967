"""Rank program: with MPI_THREAD_SERIALIZED any thread may make the next call. For two ranks.

The main thread and two others make the calls, never two at once: one starts an operation, and
another completes it.
"""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError
from hbmcomm.transports.native import lib
from tests.hbmcomm.ranks.promising import keep, promise, until
from tests.hbmcomm.ranks.refusal import give_up, refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHORT, LONG = 8, 1 << 18  # of float32: 32 B and 1 MiB
LATE = 0.002  # seconds
MANY = 200

assert MPI.Query_thread() == MPI.THREAD_SERIALIZED

comm = Communicator(WORLD, "regular", "direct")
threads = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
PAIRS = ((0, 1), (0, None), (None, 0), (0, 0))
"""Which thread starts, and which completes; None: the main one."""
COMPLETIONS: dict[str, Callable[[Any], object]] = {
    "Wait": lambda request: request.Wait(),
    "Test": lambda request: until(request.Test),
    "Waitall": lambda request: MPI.Request.Waitall([request]),
    "Waitany": lambda request: MPI.Request.Waitany([request]),
    "Testall": lambda request: until(lambda: MPI.Request.Testall([request])),
    "Testsome": lambda request: until(lambda: bool(MPI.Request.Testsome([request]))),
}


def on(thread: int | None, call: Callable[[], Any]) -> Any:
    """Have a thread make a call; the others wait for it."""
    return call() if thread is None else threads[thread].submit(call).result()


def starts() -> Iterator[tuple[Callable[[], Any], Any]]:
    """Ways to start a sum of both ranks, and where it will be 3."""
    for count in (SHORT, LONG):
        for make in (comm.empty, np.empty):
            x, y = make(count, "float32"), make(count, "float32")
            x[:], y[:] = RANK + 1, -1
            plan = comm.Allreduce_init(x, y)

            def start(plan: Any = plan) -> Any:
                plan.Start()
                return plan

            yield lambda x=x, y=y: comm.Iallreduce(x, y), y
            yield start, y


@promise
def what_one_thread_starts_another_completes() -> None:
    for name, complete in COMPLETIONS.items():
        for number, (start, y) in enumerate(starts()):
            for first, second in PAIRS:
                y[:] = -1
                WORLD.Barrier()
                time.sleep(LATE * (number % 2 == RANK))
                request = on(first, start)
                on(second, lambda complete=complete, request=request: complete(request))
                assert (y == 3).all(), f"{name} on {second} of what {first} started"
                on(second, request.Wait)


@promise
def buffers_of_requests_that_a_thread_dropped_stay() -> None:
    """Rank 1 is late: its sums come into memory that rank 0 must not have given to others."""
    for make in (comm.empty, np.empty):
        WORLD.Barrier()
        if RANK:
            WORLD.recv(source=0)

        def begin(make: Callable[..., Any] = make) -> None:
            for _ in range(4):
                x, y = make(LONG, "float32"), make(LONG, "float32")
                x[:], y[:] = RANK + 1, -1
                comm.Iallreduce(x, y)

        on(0, begin)
        gc.collect()
        others = [make(LONG, "float32") for _ in range(8)]
        for other in others:
            other[:] = -7
        if RANK == 0:
            WORLD.send(None, 1)
        on(1, comm.Barrier)
        assert all((other == -7).all() for other in others)


@promise
def threads_that_end_leave_nothing_behind() -> None:
    """Each of many threads starts or completes one call."""
    x, y = np.full(SHORT, RANK + 1.0), np.zeros(SHORT)
    made: list[Any] = []
    for _ in range(MANY):
        for call in (lambda: made.append(comm.Iallreduce(x, y)), lambda: made.pop().Wait()):
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
        assert (y == 3).all()
    assert not lib.hbm_in_flight()


@promise
def every_thread_learns_of_a_lost_rank() -> None:
    for complete in COMPLETIONS.values():
        own = on(0, comm.Dup)
        if RANK:
            on(1, lambda own=own: give_up(own))
        else:
            request = on(0, lambda own=own: own.Iallreduce(np.ones(LONG), np.zeros(LONG)))
            with refused((HbmcommError, MPI.Exception)):
                on(1, lambda complete=complete, request=request: complete(request))
        on(0, own.Free)
        WORLD.Barrier()


if __name__ == "__main__":
    keep()
