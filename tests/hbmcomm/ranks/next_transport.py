"""Rank program: where a transport is unavailable, auto takes the next one, on all ranks alike.

A transport that fails on demand is put before mpi; then direct itself is refused its memory.
The promises are in this order. Needs 3 ranks or more.
"""

import contextlib
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import (
    ArenaUnavailable,
    Communicator,
    HbmcommError,
    KindUnavailable,
    OutOfMemory,
    options,
)
from hbmcomm.options import TRANSPORTS
from hbmcomm.transports.transport import Transport
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size

Child = Callable[[Any], Any]
CHILDREN: dict[str, Child] = {
    "Dup": lambda comm: comm.Dup(),
    "Clone": lambda comm: comm.Clone(),
    "Dup_with_info": lambda comm: comm.Dup_with_info(MPI.INFO_NULL),
    "Split": lambda comm: comm.Split(comm.rank == 0),
    "Split_type": lambda comm: comm.Split_type(MPI.COMM_TYPE_SHARED),
    "Create": lambda comm: comm.Create(comm.group.Incl([0, 1])),
    "Create_group": lambda comm: comm.Create_group(comm.group),
    "Create_cart": lambda comm: comm.Create_cart([comm.size]),
    "Communicator": lambda comm: Communicator(comm),
}


class Fickle(Transport):
    """A transport that raises `problem` when it begins; it exchanges a message before."""

    problem: BaseException | None = None
    left = 0

    def _begin(self) -> None:
        MPI.Comm.Barrier(self)
        self.mark = "begun"
        if Fickle.problem is not None:
            raise Fickle.problem

    def _abandon(self) -> None:
        Fickle.left += 1

    def Barrier(self) -> None:
        assert self.mark == "begun"
        super().Barrier()

    Allreduce_init = MPI.Intracomm.Allreduce_init


@contextlib.contextmanager
def failing(problem: BaseException | None) -> Iterator[None]:
    Fickle.problem, Fickle.left = problem, 0
    try:
        yield
    finally:
        Fickle.problem = None


def works(comm: Any) -> bool:
    comm.Barrier()
    y = np.zeros(1)
    comm.Allreduce(np.ones(1), y)
    return bool(y[0] == comm.size)


@promise
def direct_itself_is_followed_by_mpi() -> None:
    """Under a limit of address space that leaves one rank no room for another arena."""
    parent: Any = Communicator(WORLD)
    assert parent.transport == "direct"
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    for name, child in CHILDREN.items():
        if RANK == 1:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, hard))
        made = child(parent)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        if made != MPI.COMM_NULL:
            assert len(set(made.allgather(made.transport))) == 1, name
            assert works(made), name
            made.Free()
    assert works(parent)
    parent.Free()


@promise
def fickle_is_tried_first() -> None:
    TRANSPORTS["fickle"] = Fickle
    options.AUTO = ("fickle", "mpi")


@promise
def every_child_finds_a_transport_of_its_own() -> None:
    parent: Any = Communicator(WORLD)
    assert parent.transport == "fickle"
    for name, child in CHILDREN.items():
        for problem in (ArenaUnavailable("none"), OutOfMemory("none"), OSError(12, "none")):
            with failing(problem):
                made = child(parent)
            if made == MPI.COMM_NULL:
                continue
            assert (made.transport, Fickle.left) == ("mpi", 0), name
            assert works(made), name
            assert not hasattr(made, "mark"), "a transport that was not taken leaves nothing"
            with failing(None):
                assert made.Dup().transport == "mpi", "what a parent has not, its heirs have not"
            made.Free()
        again = child(parent)
        assert again.transport == "fickle", name
        if again:
            again.Free()
    assert (parent.transport, works(parent)) == ("fickle", True)
    parent.Free()


@promise
def one_rank_alone_is_enough() -> None:
    parent: Any = Communicator(WORLD)
    with failing(ArenaUnavailable("none") if RANK == 1 else None):
        made = parent.Dup()
        assert (made.transport, Fickle.left) == ("mpi", int(RANK != 1))
        first = Communicator(WORLD)
        assert first.transport == "mpi"
    with failing(ArenaUnavailable("none") if RANK == 0 else None):
        halves = parent.Split(RANK == 0)
    assert halves.transport == ("mpi" if RANK == 0 else "fickle"), "each child decides for itself"
    for communicator in (made, first, halves, parent):
        assert works(communicator)
        communicator.Free()


@promise
def a_transport_that_was_asked_for_is_no_matter_of_choice() -> None:
    parent: Any = Communicator(WORLD, transport="fickle")
    for problem, error in (
        (ArenaUnavailable("no room"), ArenaUnavailable),
        (OutOfMemory("no room"), OutOfMemory),
        (TypeError("no room"), TypeError if RANK == 1 else HbmcommError),
    ):
        with failing(problem if RANK == 1 else None):
            with refused(error, "no room" if RANK == 1 else "rank 1: "):
                parent.Dup()
            with refused(error, "no room"):
                Communicator(WORLD, transport="fickle")
    assert works(parent)
    parent.Free()


@promise
def a_mistake_and_a_kind_that_cannot_be_had_are_errors_on_all_ranks() -> None:
    parent: Any = Communicator(WORLD)
    wrong = (KindUnavailable("wrong"), HbmcommError("wrong"), AssertionError("wrong"))
    for problem in (*wrong, OSError(24, "wrong")):  # EMFILE
        with failing(problem if RANK == 2 else None):
            alike = isinstance(problem, HbmcommError) or RANK == 2
            with refused(type(problem) if alike else HbmcommError, "wrong"):
                parent.Dup()
    assert works(parent)
    parent.Free()


@promise
def an_heir_of_idup_decides_at_its_first_call_that_may_block() -> None:
    parent: Any = Communicator(WORLD)
    for problem, wanted in ((None, "fickle"), (ArenaUnavailable("none"), "mpi")):
        for first in ("Barrier", "Allreduce_init", "Dup", "Free"):
            with failing(problem if RANK == 1 else None):
                later, request = parent.Idup()
                request.Wait()
                does_not_wait(later)
                if first == "Free":
                    later.Free()
                    continue
                if first == "Dup":
                    heir = later.Dup()
                    assert heir.transport == wanted
                    heir.Free()
                elif first == "Barrier":
                    later.Barrier()
                else:
                    with contextlib.suppress(NotImplementedError):
                        later.Allreduce_init(np.ones(1), np.zeros(1))
                assert works(later)
                assert later.transport == wanted
                later.Free()
    parent.Free()


def does_not_wait(comm: Any) -> None:
    """Nonblocking calls return on rank 0 before the others have made theirs."""
    if RANK == 0:
        barrier, sent = comm.Ibarrier(), comm.isend("hello", 1)
        for other in range(1, RANKS):
            WORLD.send("go on", other)
        sent.wait()
    else:
        WORLD.recv(source=0)
        barrier = comm.Ibarrier()
        assert RANK != 1 or comm.recv(source=0) == "hello"
    barrier.Wait()


if __name__ == "__main__":
    keep()
