"""Rank program: a rank that waits, here or in MPI, lets everything else go on. For two ranks.

random_programs.py has the waits for each other of several communicators, requests and plans.

What rank 0 waits for comes only if rank 1, which waits for something else, has a hand in it.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, promise, until

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHORT, LONG = 1, 1 << 20  # of float32: 4 B and 4 MiB
HANDED = 1 << 20  # of float32: no MPI here completes 4 MiB without its sender's hand

other_of_mpi = WORLD.Dup()
comm = Communicator(WORLD, "regular", "direct")


class Sum:
    """A sum over the ranks that is in flight."""

    def __init__(self, count: int, place: str, of: Communicator = comm) -> None:
        make = of.empty if place == "arena" else np.empty
        self.x, self.y = make(count, "float32"), make(count, "float32")
        self.x[:], self.y[:] = RANK + 1, -1
        self.request = of.Iallreduce(self.x, self.y)

    def wait(self) -> None:
        self.request.Wait()
        self.check()

    def check(self) -> None:
        assert (self.y == 3).all()


def sums() -> Iterator[Sum]:
    """Short and long, of arrays in the arena and of private ones."""
    for count in (SHORT, LONG):
        for place in ("arena", "private"):
            yield Sum(count, place)


@promise
def a_barrier_of_mpi_before_the_wait() -> None:
    for pending in sums():
        acts = (other_of_mpi.Barrier, pending.wait)
        for act in acts if RANK == 0 else reversed(acts):
            act()


@promise
def a_wait_inside_mpi_completes_our_operation() -> None:
    """Rank 1 is in MPI until rank 0 has waited for what needs both."""
    token = np.zeros(1)
    inside: dict[str, Callable[[], object]] = {
        "Recv": lambda: WORLD.Recv(token, 0),
        "Probe": lambda: (WORLD.Probe(0), WORLD.Recv(token, 0)),
        "Wait": lambda: WORLD.Irecv(token, 0).Wait(),
        "Waitall": lambda: MPI.Request.Waitall([WORLD.Irecv(token, 0)]),
        "Test": lambda: until(WORLD.Irecv(token, 0).Test),
        "Iprobe": lambda: (until(lambda: WORLD.Iprobe(0)), WORLD.Recv(token, 0)),
        "Sendrecv": lambda: WORLD.Sendrecv(np.zeros(1), 0, recvbuf=token, source=0),
        "recv of an object": lambda: WORLD.recv(source=0),
    }
    for name, wait in inside.items():
        for pending in sums():
            if RANK:
                wait()
                pending.wait()
            else:
                pending.wait()
                send = WORLD.send if name == "recv of an object" else WORLD.Send
                send(token, 1)
                if name == "Sendrecv":
                    WORLD.Recv(token, 1)


@promise
def our_waits_let_a_long_message_of_mpi_go_on() -> None:
    """A message that needs its sender's hand, before a wait of the sender here."""
    big = np.zeros(HANDED, "float32")
    pending = Sum(LONG, "arena")
    waits: tuple[Callable[[], object], ...] = (
        *(comm.Barrier, pending.wait, lambda: comm.Allreduce(MPI.IN_PLACE, np.ones(LONG))),
        lambda: comm.Ibarrier().Wait(),
        lambda: until(comm.Ibarrier().Test),
        lambda: comm.Barrier_init()(),
    )
    for number, wait in enumerate(waits):
        if RANK == 0:
            big[:] = number
            sent = WORLD.Isend(big, 1)
            wait()
            sent.Wait()
        else:
            WORLD.Recv(big, 0)
            assert (big == number).all()
            wait()


@promise
def a_message_that_waits_for_its_receiver_does_not_keep_others() -> None:
    """It is there all the time; what goes on beside it needs the hand of a rank that waits."""
    early, big = np.zeros(1), np.zeros(HANDED, "float32")
    if RANK == 0:
        WORLD.Recv(early, 1, tag=1)
        sent = WORLD.Isend(big, 1, tag=3)
        comm.Barrier()
        sent.Wait()
        WORLD.Recv(early, 1, tag=2)
    else:
        requests = [WORLD.Isend(early, 0, tag=2), WORLD.Isend(early, 0, tag=1)]
        time.sleep(0.05)  # the other rank has found the former before the latter, and waits
        WORLD.Recv(big, 0, tag=3)
        comm.Barrier()
        MPI.Request.Waitall(requests)


@promise
def one_that_is_dropped_completes_all_the_same() -> None:
    """Its arrays live until then, and nobody waits for it by name."""
    for pending in sums():
        y = pending.y
        del pending
        comm.Barrier()
        assert (y == 3).all()


@promise
def what_idup_made_waits_for_nobody_when_a_call_begins() -> None:
    later, request = comm.Idup()
    request.Wait()
    if RANK == 0:
        pending = Sum(SHORT, "private", later)
        WORLD.send("begun", 1)
    else:
        WORLD.recv(source=0)
        pending = Sum(SHORT, "private", later)
    pending.wait()
    later.Free()


if __name__ == "__main__":
    keep()
