"""Rank program: threads, forks, signals and careless ends do no harm. For three ranks."""

import atexit
import gc
import os
import signal
import threading
import time
import traceback
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
MANY = 80  # communicators
A_WHILE = 0.3  # seconds that one rank lets the others wait


def direct() -> Communicator:
    return Communicator(WORLD, "regular", "direct")


@promise
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


@promise
def a_function_that_mpi_runs_on_another_thread_stops_no_call() -> None:
    """Intel MPI runs it with the lock of all its functions, and it needs Python's lock."""
    comm, entered = direct(), threading.Event()

    def slowly(one: MPI.buffer, other: MPI.buffer, _: MPI.Datatype) -> None:
        entered.set()
        time.sleep(A_WHILE)  # without Python's lock
        np.frombuffer(other, "f8")[...] += np.frombuffer(one, "f8")

    def total(one: MPI.buffer, other: MPI.buffer, _: MPI.Datatype) -> None:
        np.frombuffer(other, "f8")[...] += np.frombuffer(one, "f8")

    slow, sum_of = MPI.Op.Create(slowly, commute=True), MPI.Op.Create(total, commute=True)
    pair = MPI.DOUBLE.Create_vector(2, 1, 2).Create_resized(0, 32).Commit()
    given, taken = np.ones(2), np.zeros(2)
    waiter = threading.Thread(target=lambda: WORLD.Iallreduce(given, taken, slow).Wait())
    waiter.start()
    while waiter.is_alive() and not entered.wait(0.01):
        pass  # MPI may run it on other ranks alone
    x, spread = np.zeros(2), np.zeros((comm.size, 4))
    comm.Allreduce(np.ones(2), x, sum_of)
    comm.Allgather([np.ones(4), 1, pair], [spread, 1, pair])
    waiter.join()
    assert (x == comm.size).all() and (taken == comm.size).all()
    assert (spread == [1, 0, 1, 0]).all()
    comm.Free()


@promise
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


@promise
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


@promise
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


@promise
def many_leave_neither_files_nor_mappings() -> None:
    """Every third is dropped, and the others are freed."""
    direct().Free()
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
        if index % 3:
            comm.Free()
        WORLD.Barrier()  # else a rank leaves while others still are in a call
    del comm, heir, plan, x
    gc.collect()
    now = held()
    assert now[0] <= files + 2, f"{now[0]} files open, before {files}"
    assert now[1] <= maps, f"{now[1]} mappings, before {maps}"


@promise
def exit_handlers_still_call_communicators() -> None:
    """Also those made later; a handler's error alone would not end the program with an error."""

    @atexit.register
    def at_exit() -> None:
        try:
            total = np.empty(3)
            request = comm.Iallreduce(np.full(3, float(RANK)), total)
            with comm.Dup() as dup:
                assert dup.allreduce([RANK]) == [0, 1, 2]
            request.Wait()
            assert (total == 3).all()
        except BaseException:
            traceback.print_exc()
            WORLD.Abort(1)

    comm = direct()


def held() -> tuple[int, int]:
    """Open files and mappings of shared memory."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return files, sum("hbmcomm" in line for line in maps)


if __name__ == "__main__":
    keep()
