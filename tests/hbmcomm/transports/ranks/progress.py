"""Rank program: a rank that waits, here or in MPI, lets everything else go on. For two ranks.

What rank 0 waits for comes only if rank 1, which waits for something else, has a hand in it.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from drawn.flights import completed
from mpi4py import MPI
from promising import keep, promise, until

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHORT, LONG = 1, 1 << 20  # of float32: 4 B and 4 MiB
HANDED = 1 << 20  # of float32: no MPI here completes 4 MiB without its sender's hand

other_of_mpi = WORLD.Dup()
comm, other = (Communicator(WORLD, "regular", "direct") for _ in range(2))


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


def meet(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Rank 0 does one thing first, rank 1 the other."""
    for each in (first, second) if RANK == 0 else (second, first):
        each()


@promise
def our_barrier_before_the_wait() -> None:
    for pending in sums():
        meet(comm.Barrier, pending.wait)


@promise
def a_barrier_of_another_of_our_communicators_before_the_wait() -> None:
    for pending in sums():
        meet(other.Barrier, pending.wait)


@promise
def a_barrier_of_mpi_before_the_wait() -> None:
    for pending in sums():
        meet(other_of_mpi.Barrier, pending.wait)


@promise
def a_long_reduction_of_ours_before_the_wait() -> None:
    x = other.full(LONG, RANK + 1.0, "float32")
    for pending in sums():
        y = other.zeros(LONG, "float32")
        meet(lambda y=y: other.Allreduce(x, y), pending.wait)
        assert (y == 3).all()


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
def mpis_waits_take_our_requests_among_its_own() -> None:
    """Both in both orders, and never all of one sort complete before the others."""
    for count in (SHORT, LONG):
        for ours_first in (True, False):
            pending = [Sum(count, "arena"), Sum(count, "private", other)]
            token, got = np.full(1, RANK), np.full(1, -1)
            theirs = [WORLD.Irecv(got, 1 - RANK), WORLD.Isend(token, 1 - RANK)]
            ours = [each.request for each in pending]
            every = ours + theirs if ours_first else theirs + ours
            meet(lambda every=every: MPI.Request.Waitall(every), comm.Barrier)
            assert got[0] == 1 - RANK
            for each in pending:
                each.check()
                each.request.Wait()  # at once


@promise
def waitany_waitsome_testall_testany_and_testsome_take_them_too() -> None:
    for way in ("Waitany", "Waitsome", "Testall", "Testany", "Testsome") * 5:
        pending = [Sum(LONG, "arena"), Sum(SHORT, "private"), Sum(LONG, "private", other)]
        got = np.full(1, -1)
        every = [each.request for each in pending] + [WORLD.Irecv(got, 1 - RANK)]
        meet(lambda: WORLD.Send(np.full(1, RANK), 1 - RANK), comm.Barrier)
        finish(way, every)
        assert got[0] == 1 - RANK
        for each in pending:
            each.check()


def finish(way: str, requests: list[MPI.Request]) -> None:
    """Complete requests by one of MPI's calls, which must name each of them exactly once."""
    left = set(range(len(requests)))
    while left:
        done = completed(way, requests, list(left))
        assert set(done) <= left, f"{way} names {done}, but {left} are left"
        left -= set(done)
    assert not any(requests), "handles stay"


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
def requests_of_several_communicators_complete_in_any_order() -> None:
    """Started in other orders on each rank, too: only those of one communicator have an order."""
    comms = [comm, other, comm.Dup(), comm.Split(0, -RANK)]
    for count in (SHORT, LONG):
        order = range(len(comms)) if RANK == 0 else reversed(range(len(comms)))
        pending = {index: Sum(count, "arena", comms[index]) for index in order}
        for index in (2, 0, 3, 1) if RANK == 0 else (1, 3, 0, 2):
            pending[index].wait()
    for each in comms[2:]:
        each.Free()


@promise
def several_of_one_communicator_complete_in_any_order() -> None:
    pending = [Sum(count, place) for count in (LONG, SHORT) for place in ("arena", "private")]
    order = (3, 0, 2, 1) if RANK == 0 else (2, 1, 3, 0)
    for index in order:
        pending[index].wait()


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
