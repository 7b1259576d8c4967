"""Rank program: any number of communicators and operations in flight. For two ranks.

The variable HBMCOMM_TEST_MANY changes the number of communicators.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, promise, until

WORLD = MPI.COMM_WORLD
MANY = int(os.environ.get("HBMCOMM_TEST_MANY", "130"))
OPERATIONS = 1000  # of one communicator
GO, DONE = 1, 2  # tags

comms = [Communicator(WORLD, "regular", "direct") for _ in range(MANY)]


def first_of_many(wait: Callable[[Any], object]) -> None:
    """Rank 0 waits for the first barrier with all others in flight, before rank 1 starts those."""
    if WORLD.rank == 0:
        first, *rest = [comm.Ibarrier() for comm in comms]
        WORLD.send(None, 1, GO)
        wait(first)
        WORLD.send(None, 1, DONE)
    else:
        WORLD.recv(source=0, tag=GO)
        comms[0].Ibarrier().Wait()
        WORLD.recv(source=0, tag=DONE)
        rest = [comm.Ibarrier() for comm in comms[1:]]
    for request in reversed(rest):
        request.Wait()


@promise
def the_first_of_many_completes_in_a_wait() -> None:
    first_of_many(lambda request: request.Wait())


@promise
def the_first_of_many_completes_in_a_wait_of_mpi() -> None:
    first_of_many(lambda request: MPI.Request.Waitall([request]))


@promise
def the_first_of_many_completes_in_tests() -> None:
    first_of_many(lambda request: until(request.Test))


@promise
def the_first_of_many_completes_in_another_wait() -> None:
    """Rank 0 waits for a message that rank 1 sends once the first operation is complete there."""
    x, y = np.ones(OPERATIONS), np.zeros((MANY, OPERATIONS))
    if WORLD.rank == 0:
        first, *rest = [comm.Iallreduce(x, y[i]) for i, comm in enumerate(comms)]
        WORLD.recv(source=1, tag=GO)
        WORLD.send(None, 1, DONE)
        first.Wait()
    else:
        comms[0].Iallreduce(x, y[0]).Wait()
        WORLD.send(None, 0, GO)
        WORLD.recv(source=0, tag=DONE)
        rest = [comm.Iallreduce(x, y[i]) for i, comm in enumerate(comms[1:], 1)]
    MPI.Request.Waitall(rest)
    assert (y == 2).all()


@promise
def a_thousand_operations_of_one_communicator_complete_from_the_last_to_the_first() -> None:
    x, y = np.ones(OPERATIONS), np.zeros((OPERATIONS, OPERATIONS))
    requests = [comms[0].Iallreduce(x, y[i]) for i in range(OPERATIONS)]
    for request in reversed(requests):
        request.Wait()
    assert (y == 2).all()


keep()
