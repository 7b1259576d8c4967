"""Rank program: signals, calls that differ and lost ranks end calls, and spoil nothing. Two ranks.

Rank 1 makes its call once rank 0 has been interrupted in its own.
"""

import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator, HbmcommError, PeerError
from hbmcomm.transports.native import ffi, lib
from tests.hbmcomm.ranks.promising import keep, promise, until
from tests.hbmcomm.ranks.refusal import give_up, refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHORT, LONG = 8, 1 << 20  # of float32: 32 B and 4 MiB
A_WHILE = 0.05  # seconds
PATTERN = 0xA5

parent = Communicator(WORLD, "regular", "direct")  # its children share its memory


@contextlib.contextmanager
def ctrl_c(after: Callable[[], object] = int) -> Iterator[None]:
    """A SIGINT for this rank, which must raise KeyboardInterrupt inside; then the other goes on."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, A_WHILE)
    try:
        yield
    except KeyboardInterrupt:
        after()
        WORLD.send(None, 1)
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    raise AssertionError("no KeyboardInterrupt")


def calls(comm: Communicator, make: Any, count: int) -> dict[str, Callable[[], object]]:
    """Calls in which rank 1 gives, and rank 0 takes; the arrays are freed with the function."""
    x, y = make(count, "float32"), make(2 * count, "float32")
    x[:], y[:] = RANK + 1, -1
    return {
        "Allreduce": lambda: comm.Allreduce(x, y[:count]),
        "Bcast": lambda: comm.Bcast(y[:count], 1),
        "Gather": lambda: comm.Gather(x, y, 0),
        "Allgather": lambda: comm.Allgather(x, y),
        "Alltoall": lambda: comm.Alltoall(y, make(2 * count, "float32")),
    }


NAMES = ("Allreduce", "Bcast", "Gather", "Allgather", "Alltoall")


def be_late() -> None:
    """Rank 1 goes on once rank 0 has been interrupted."""
    if RANK:
        WORLD.recv(source=0)


def reused(make: Any, count: int) -> list[Any]:
    """New arrays of the same lengths, which must stay as they are."""
    arrays = [make(length, "float32") for length in (count, 2 * count, count, 2 * count)]
    for array in arrays:
        array.view("u1")[:] = PATTERN
    return arrays


def after_the_failure(fail: Callable[[Communicator, Callable[[], object]], None]) -> None:
    """Rank 0 frees the arrays of its failed call and makes new ones: nobody writes into them."""
    for count in (SHORT, LONG):
        for name in NAMES:
            for private in (False, True):
                comm = parent.Dup()
                make: Any = np.empty if private else comm.empty
                fail(comm, calls(comm, make, count)[name])
                gc.collect()
                arrays = reused(np.empty if private else parent.empty, count)
                WORLD.Barrier()  # the late rank has made its call
                for array in arrays:
                    assert (array.view("u1") == PATTERN).all(), f"{name} of {count} wrote again"
                with refused(HbmcommError):
                    comm.Barrier()
                comm.Free()


@promise
def an_interrupted_call_is_an_error_elsewhere_and_leaves_memory_alone() -> None:
    def fail(comm: Communicator, call: Callable[[], object]) -> None:
        if RANK == 0:
            with ctrl_c():
                call()
        else:
            be_late()
            with refused((PeerError, CallMismatch)):
                call()
                comm.Barrier()

    after_the_failure(fail)


@promise
def what_a_late_rank_reads_is_right_or_an_error() -> None:
    """The interrupted rank gives, and uses its array again before the late one reads it."""
    for count in (SHORT, LONG):
        for make in (parent.empty, np.empty):
            for name in ("Bcast", "Scatter"):
                comm = parent.Dup()
                x, y = make(2 * count, "float32"), make(count, "float32")
                x[:], y[:] = 1, -1
                late = RANK == 1
                be_late()  # the other was interrupted, and has used its array again
                with contextlib.suppress(HbmcommError) if late else ctrl_c(lambda x=x: x.fill(-5)):
                    if name == "Bcast":
                        comm.Bcast(y if late else x[:count], 0)
                    else:
                        comm.Scatter(None if late else x, y, 0)
                    assert (y == 1).all() or not late, f"{name} of {count}: wrong, and no error"
                    comm.Barrier()
                    comm.Barrier()  # where the other had come to the first
                comm.Free()
                WORLD.Barrier()


@promise
def calls_that_differ_leave_memory_alone() -> None:
    """Rank 0 calls something else: it learns of it as soon as rank 1 has come."""

    def fail(comm: Communicator, call: Callable[[], object]) -> None:
        time.sleep(A_WHILE / 2 if RANK else 0)
        with refused(CallMismatch):
            if RANK:
                comm.Reduce_scatter_block(np.zeros(6, "int8"), np.zeros(3, "int8"))
            else:
                call()
            comm.Barrier()

    after_the_failure(fail)


@promise
def a_rank_that_left_leaves_memory_alone() -> None:
    def fail(comm: Communicator, call: Callable[[], object]) -> None:
        if RANK:
            time.sleep(A_WHILE / 2)
            give_up(comm)
            with refused(PeerError):
                call()
        else:
            with refused(PeerError):
                call()
                comm.Barrier()

    after_the_failure(fail)


def in_flight(comm: Communicator) -> list[Any]:
    """A request and a plan that need both ranks; this rank alone has started them."""
    x = np.ones(LONG)
    plan = comm.Allreduce_init(x, np.zeros(LONG))
    request = comm.Iallreduce(x, np.zeros(LONG))
    plan.Start()
    return [request, plan]


@promise
def what_is_in_flight_ends_with_its_communicator() -> None:
    """One rank is interrupted in a blocking call: no request or plan of the other stays."""
    for _ in range(2):
        comm = parent.Dup()
        requests = in_flight(comm)
        if RANK == 0:
            with ctrl_c():
                comm.Barrier()
            WORLD.Barrier()
        be_late()
        for request in requests:
            with contextlib.suppress(PeerError):  # those that were complete before are right
                request.Wait()
            request.Wait()
        if RANK:
            with refused((PeerError, CallMismatch)):
                comm.Barrier()
                comm.Barrier()  # where the other had come to the first
            WORLD.Barrier()
        requests[1].Free()
        assert not lib.hbm_in_flight()
        comm.Free()


@promise
def a_rank_that_only_polls_learns_of_a_loss() -> None:
    """By our Test, and inside MPI by its waits."""
    ways: tuple[Callable[[Any], object], ...] = (
        lambda request: until(request.Test),
        lambda request: until(lambda: MPI.Request.Testall([request])),
        lambda request: MPI.Request.Waitall([request]),
        lambda request: MPI.Request.Waitany([request]),
    )
    for way in ways:
        for number in range(2):
            comm = parent.Dup()
            if RANK:
                time.sleep(A_WHILE)
                give_up(comm)
            else:
                began = time.monotonic()
                with refused((PeerError, MPI.Exception)):
                    way(in_flight(comm)[number])
                assert time.monotonic() - began < 2.0
            comm.Free()
            WORLD.Barrier()


@promise
def an_interrupt_around_a_function_of_the_program_is_kept() -> None:
    """A signal may arrive before that function is entered, or after it has returned.

    The last promise: the next call that is interrupted would raise what is kept.
    """

    class Interrupted:
        def Reduce_local(self, *_: object) -> None:
            raise KeyboardInterrupt

    function = ffi.new_handle((Interrupted(), MPI.BYTE))
    memory = ffi.new("char[2]")
    fields = {"dtype": lib.HBM_PACKED, "reduction": lib.HBM_USER, "count": 1, "entry_bytes": 1}
    call = ffi.new("hbm_call *", fields | {"reduce": lib.hbm_user_reduces})
    call.function = ffi.cast("uintptr_t", function)
    inputs = ffi.new("const void *[2]", [memory, memory + 1])
    status = lib.hbm_fold(call, inputs, 2, memory)
    assert status == lib.HBM_INTERRUPTED


if __name__ == "__main__":
    keep()
