"""Rank program: threads, forks, signals and a careless end do what the contract says.

Prints "kept" on each rank. Usage: direct_misuse.py TRANSPORT
"""

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import say
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
MANY = 80  # communicators
A_WHILE = 0.3  # seconds that one rank lets the others wait


def direct() -> Communicator:
    return Communicator(WORLD, "regular", sys.argv[1])


def a_second_thread_is_refused_and_the_first_goes_on() -> None:
    comm, x = direct(), np.ones(3)
    if RANK == 0:
        first = threading.Thread(target=comm.Allreduce, args=(MPI.IN_PLACE, x))
        first.start()
        time.sleep(A_WHILE)
        with refused(hbmcomm.HbmcommError, "thread"):
            comm.Barrier()
        WORLD.Barrier()
        first.join()
    else:
        WORLD.Barrier()
        comm.Allreduce(MPI.IN_PLACE, x)
    assert (x == comm.size).all()
    comm.Barrier()
    comm.Free()


def threads_with_a_communicator_each_work_side_by_side() -> None:
    comms, sums = [direct() for _ in range(3)], []

    def add(comm: Communicator) -> None:
        x = comm.full(5000, RANK, "int64")
        for _ in range(50):
            y = comm.empty_like(x)
            comm.Allreduce(x, y)
        sums.append(int(y[-1]))

    threads = [threading.Thread(target=add, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(WORLD.size))] * 3, sums
    for comm in comms:
        comm.Free()


def other_threads_run_while_one_waits() -> None:
    comm, ticks = direct(), []
    waiter = threading.Thread(target=comm.Barrier)
    waiter.start()
    if RANK:
        for _ in range(10):
            time.sleep(A_WHILE / 20)
            ticks.append(time.monotonic())
    WORLD.Barrier()
    waiter.join()
    assert RANK == 0 or len(ticks) == 10
    comm.Free()


def a_child_may_not_call_and_harms_nobody() -> None:
    comm = direct()
    x = comm.full(100_000, 1.0)
    child = os.fork()
    if child == 0:
        try:
            with refused(hbmcomm.HbmcommError, "fork"):
                comm.Allreduce(MPI.IN_PLACE, x)
            with refused(hbmcomm.HbmcommError):
                comm.Barrier()
            assert x.min() >= 1.0  # the memory is there, and shared with the parent
            del x, comm
            gc.collect()
        except BaseException as error:
            os.write(1, f"child of rank {RANK}: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    comm.Allreduce(MPI.IN_PLACE, x)
    assert (x == comm.size).all()
    _, status = os.waitpid(child, 0)
    assert status == 0
    comm.Allreduce(MPI.IN_PLACE, x)
    assert (x == comm.size**2).all()
    comm.Free()


def an_interrupt_ends_a_wait_and_the_others_learn_of_it(count: int) -> None:
    comm, pids = direct(), WORLD.allgather(os.getpid())
    x = comm.zeros(count)
    if RANK == 0:
        began = time.monotonic()
        with refused(KeyboardInterrupt):
            comm.Allreduce(MPI.IN_PLACE, x)
        assert time.monotonic() - began < A_WHILE + 1.0
    elif RANK == 1:
        time.sleep(A_WHILE)
        os.kill(pids[0], signal.SIGINT)
        time.sleep(A_WHILE)
    began = time.monotonic()
    with refused(hbmcomm.HbmcommError):  # what rank 0 gave before may serve one more call
        comm.Allreduce(MPI.IN_PLACE, x)
        comm.Allreduce(MPI.IN_PLACE, x)
    assert time.monotonic() - began < 2 * A_WHILE + 1.5
    comm.Free()


def a_handler_that_returns_lets_the_wait_go_on() -> None:
    comm, pids, seen = direct(), WORLD.allgather(os.getpid()), []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    WORLD.Barrier()
    if RANK == 0:
        comm.Barrier()
        assert len(seen) == 1
    else:
        if RANK == 1:
            time.sleep(A_WHILE / 2)
            os.kill(pids[0], signal.SIGUSR1)
        time.sleep(A_WHILE)
        comm.Barrier()
    signal.signal(signal.SIGUSR1, before)
    comm.Free()


def arrays_and_plans_outlive_their_communicator() -> None:
    comm = direct()
    x = comm.full(300_000, RANK + 1.0)
    plan = comm.Allreduce_init(MPI.IN_PLACE, x)
    plan()
    comm.Free()
    assert comm == MPI.COMM_NULL
    with refused(hbmcomm.HbmcommError):
        plan()
    x += 1
    assert (x == sum(range(WORLD.size + 1)) + 1).all()
    plan.Free()
    with refused(hbmcomm.HbmcommError, "freed"):
        plan()
    with direct() as other:  # an array of another arena is an ordinary one
        y = other.zeros(300_000)
        other.Allreduce(x, y)
        assert (y == other.size * x).all()


def one_that_is_dropped_is_gone_and_harms_nobody() -> None:
    files, maps = held()
    for _ in range(10):
        comm = direct()
        x = comm.full(10, 1.0)
        comm.Allreduce(MPI.IN_PLACE, x)
        WORLD.Barrier()  # else this rank leaves while others still are in the call
        del comm, x
        gc.collect()
    _no_more_than(files, maps)


def many_leave_neither_files_nor_mappings() -> None:
    files, maps = held()
    for index in range(MANY):
        comm = direct()
        x = comm.full(100 + 1000 * index, 1.0)
        comm.Allreduce(MPI.IN_PLACE, x)
        plan = comm.Allreduce_init(MPI.IN_PLACE, x)
        plan()
        if index % 2:
            heir = comm.Dup()
            heir.Bcast(x)
            heir.Free()
        comm.Free()
    del comm, heir, plan, x
    gc.collect()
    _no_more_than(files, maps)


def memory_is_used_again() -> None:
    comm = direct()
    for round_ in range(6):
        arrays = [comm.empty(1 << 20, "uint8") for _ in range(20)]
        for each in arrays:
            each[:] = round_
        if not round_:
            first = resident()
        del arrays[:: 1 + round_ % 3], each
    assert resident() < first + (24 << 20), "arrays that were given back are not used again"
    comm.Free()


def held() -> tuple[int, int]:
    """Open files and mappings of shared memory."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return files, sum("hbmcomm" in line for line in maps)


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _no_more_than(files: int, maps: int) -> None:
    now = held()
    assert now[0] <= files + 2, f"{now[0]} files open, before {files}"
    assert now[1] <= maps, f"{now[1]} mappings, before {maps}"


if __name__ == "__main__":
    direct().Free()
    a_second_thread_is_refused_and_the_first_goes_on()
    threads_with_a_communicator_each_work_side_by_side()
    other_threads_run_while_one_waits()
    a_child_may_not_call_and_harms_nobody()
    an_interrupt_ends_a_wait_and_the_others_learn_of_it(3)
    an_interrupt_ends_a_wait_and_the_others_learn_of_it(300_000)
    a_handler_that_returns_lets_the_wait_go_on()
    arrays_and_plans_outlive_their_communicator()
    one_that_is_dropped_is_gone_and_harms_nobody()
    many_leave_neither_files_nor_mappings()
    memory_is_used_again()
    say("kept")
