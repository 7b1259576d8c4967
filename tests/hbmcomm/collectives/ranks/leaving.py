"""Rank program: rank 0 leaves a communicator while rank 1, which is slow, still reads its memory.

    mpiexec -n 2 python leaving.py WAY CALL LIBRARY

Rank 0 completes a call and leaves in some way; then it uses all memory that it could get. Rank 1
completes the same call later, because a page of its buffer is slow. It prints what it received.
"""

import gc
import os
import signal
import sys
import time

import numpy as np
from drawn import pages
from mpi4py import MPI

import hbmcomm

WAY, CALL, LIBRARY = sys.argv[1:]
COUNT = 32 * 1024  # of float64: 256 KiB, in private memory
SLOW = 0.6  # seconds
RANK = MPI.COMM_WORLD.rank
GOES_ON = ("collected", "error in with")

pages.install(LIBRARY)
memory = pages.Pages(8 * COUNT)
x, y = np.full(COUNT, 1.0 + RANK), memory.array.view("f8")
keep = hbmcomm.Communicator(transport="direct")  # as in any program with two communicators
comm = hbmcomm.Communicator(transport="direct")


def call() -> None:
    if CALL == "Reduce":
        comm.Reduce(x, y if RANK == 1 else None, root=1)
    elif CALL == "Allreduce":
        comm.Allreduce(x, y)
    elif CALL == "Scan":
        comm.Scan(x, y)
    else:
        plan = comm.Allreduce_init(x, y)
        plan.Start()
        plan.Wait()


def use_memory() -> None:
    """What rank 0 may be given now must not be what rank 1 reads."""
    global own
    own = [hbmcomm.Communicator(MPI.COMM_SELF, transport="direct") for _ in range(8)]
    for each in own:
        each.Allreduce(np.ones(COUNT), np.zeros(COUNT))
    time.sleep(2 * SLOW)


def report() -> None:
    wrong = int((y != 3).sum())
    print(f"rank {RANK}: {'right' if not wrong else f'{wrong} entries are wrong'}", flush=True)


call()  # all buffers exist now
y[:] = 0
MPI.COMM_WORLD.Barrier()
if RANK == 1:
    memory.make_slow(np.random.default_rng(0), SLOW)
    try:
        call()
        report()
    except hbmcomm.PeerError as error:  # the rank died: an error is right, wrong data is not
        print(f"rank 1: {error}", flush=True)
    if WAY == "freed":
        comm.Free()
    os._exit(0)

if WAY == "error in with":
    try:
        with comm:
            call()
            raise ValueError("an error of the program")
    except ValueError:
        pass
else:
    call()
if WAY == "collected":
    del comm
    gc.collect()
elif WAY == "freed":
    comm.Free()
elif WAY == "sys.exit":
    sys.exit()
elif WAY == "exception":
    raise SystemExit("an error that ends the program")
elif WAY == "signal":
    os.kill(os.getpid(), signal.SIGKILL)
use_memory()
os._exit(0)
