"""Rank program: calls of objects, and calls that MPI serves, wait only where mpi4py's do.

The last rank makes its calls only once a message has come, which another rank sends after its own
calls: where one of these waits for the last rank, the program hangs.
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
LATE = RANKS - 1
TRANSPORTS = ("direct", "hierarchical")
MANY = 1000  # far more than the core has slots for posts, or calls on record


def opened(transport: str, check_calls: bool = False) -> Communicator:
    with mock.patch.dict(os.environ, {"HBMCOMM_CHECK_CALLS": str(int(check_calls))}):
        return Communicator(WORLD, "regular", transport)


def late(act: Callable[[], Any], early: int = 0) -> Any:
    """What `act` returns; the last rank begins once the early one has returned from it."""
    if RANK == LATE:
        WORLD.recv(source=early)
    returned = act()
    if early == RANK:
        WORLD.send("go", dest=LATE)
    return returned


def first_of_bytes(_: object, other: MPI.buffer, datatype: MPI.Datatype) -> None:
    """An operation that keeps its right operand: it does not commute."""


class OnDevice:
    """An array as one on a GPU looks, which mpi4py passes to MPI by its address."""

    def __init__(self, array: np.ndarray) -> None:
        self.__cuda_array_interface__ = array.__array_interface__


def served_bcast(comm: Any, number: int) -> int:
    """A broadcast of a number from rank 0 that only MPI can do."""
    x = np.full(1, number if RANK == 0 else -1)
    comm.Bcast(OnDevice(x), 0)
    return int(x[0])


EARLY: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "bcast": (0, lambda comm: comm.bcast(("an", "object"), 0)),
    "scatter": (0, lambda comm: comm.scatter(list(range(RANKS)) if RANK == 0 else None, 0)),
    "gather": (0, lambda comm: comm.gather(RANK, LATE)),
    "reduce": (1, lambda comm: comm.reduce(RANK, MPI.SUM, 0)),
}
"""Calls in which a rank waits for nobody."""


@promise
def lower_case_calls_wait_for_nobody_for_whom_mpi4pys_do_not() -> None:
    for transport in TRANSPORTS:
        with opened(transport) as comm:
            for name, (early, call) in EARLY.items():
                returned = late(partial(call, comm), early)
                expected = call(MPI.COMM_WORLD)
                assert returned == expected, f"{transport}, {name}: {returned} for {expected}"


@promise
def upper_case_calls_that_mpi_serves_do_not_either() -> None:
    last = MPI.Op.Create(first_of_bytes, commute=False)
    x = np.arange(4.0) + 10 * RANK
    own, result = np.full(3, RANK, "int32"), np.zeros(3, "int32")
    for transport in TRANSPORTS:
        with opened(transport) as comm:
            late(partial(comm.Bcast, OnDevice(x), 0))
            assert (x == np.arange(4.0)).all()
            late(partial(comm.Reduce, own, result, last, 0), 1)
            assert RANK or (result == RANKS - 1).all(), result
            x += 10 * RANK
    last.Free()


@promise
def a_root_may_make_many_calls_of_mpi_ahead_of_a_late_rank() -> None:
    """With calls of the core in between: what the late rank still reads is not overwritten."""

    def calls(comm: Any, x: Any) -> None:
        for number in range(5):
            for _ in range(MANY):
                assert served_bcast(comm, number) == number
            x[:] = number if RANK == 0 else -1
            comm.Bcast(x, 0)
            assert (x == number).all(), f"{number}: {x[:3]}"

    with opened("direct") as comm:
        late(partial(calls, comm, comm.empty(100)))
        y = np.zeros(RANKS)
        comm.Allgather(np.array([float(RANK)]), y)
        assert (y == range(RANKS)).all()


@promise
def calls_that_mpi_serves_go_between_calls_in_flight() -> None:
    def calls(comm: Any, x: Any, y: Any, requests: list[MPI.Request]) -> list[int]:
        requests.append(comm.Iallreduce(x, y))
        first = served_bcast(comm, 99)
        requests.append(comm.Ibarrier())
        return [first, *(served_bcast(comm, number) for number in range(20))]

    for transport in TRANSPORTS:
        with opened(transport) as comm:
            x, y = np.full(5000, RANK + 1.0), np.zeros(5000)
            requests: list[MPI.Request] = []
            assert late(partial(calls, comm, x, y, requests)) == [99, *range(20)]
            MPI.Request.Waitall(requests)
            assert (y == RANKS * (RANKS + 1) / 2).all()
            comm.Barrier()


@promise
def a_rank_that_waits_hears_of_another_call() -> None:
    """Of each such call; then the next call of the early rank fails too."""
    for name, (early, call) in EARLY.items():
        with opened("direct") as comm:
            with refused(CallMismatch, f"rank {early} called {name} of an object"):
                if early == RANK:
                    call(comm)
                comm.Barrier()
            with refused(CallMismatch, "called Barrier()"):
                comm.bcast(1)


@promise
def a_difference_that_is_off_the_record_is_found() -> None:
    with opened("direct") as comm, refused(CallMismatch, "HBMCOMM_CHECK_CALLS=1"):
        for _ in range(MANY if RANK == 0 else 0):
            served_bcast(comm, 0)  # nobody takes it
        comm.Barrier()


@promise
def in_debug_mode_ranks_meet_before_such_calls() -> None:
    with opened("direct", check_calls=True) as comm:
        assert comm.allgather(RANK) == list(range(RANKS))
        if RANK == LATE:
            time.sleep(0.2)
            WORLD.send(time.monotonic(), dest=0)  # one host has one clock
        served_bcast(comm, 0)
        returned = time.monotonic()
        if RANK == 0:
            assert returned >= WORLD.recv(source=LATE), "the root did not wait"
        with refused(CallMismatch, "called Bcast (served by MPI)"):
            served_bcast(comm, 1) if RANK == 0 else comm.allreduce(1)


if __name__ == "__main__":
    keep()
