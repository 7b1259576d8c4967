"""Rank program: rank 0 leaves a communicator while others, which are slow, still read its memory.

    mpiexec -n 2 python leaving.py WAY CALL LIBRARY [--sent-from arena] [--transport NAME]
        [--device DEVICE]

Rank 0 completes a call and leaves in some way; then it uses all memory that it could get. The
others complete the same call later, because a page of their buffers is slow. They print what they
received.
"""

import argparse
import contextlib
import gc
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from drawn import pages
from mpi4py import MPI

import hbmcomm

parser = argparse.ArgumentParser()
for name in ("way", "call", "library"):
    parser.add_argument(name)
parser.add_argument("--sent-from", default="private")
parser.add_argument("--transport", default="direct")
parser.add_argument("--device")
asked = parser.parse_args()
WAY, CALL, PLACE = asked.way, asked.call, {"transport": asked.transport, "device": asked.device}
COUNT = 32 * 1024  # of float64: 256 KiB
SLOW = 0.6  # seconds
RANK, SIZE = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
ENDS = ("sys.exit", "exception")

if asked.device is not None:
    sys.path.append(str(Path(__file__).parents[2] / "memory/ranks"))
    import stand_in

    stand_in.use(asked.device)
pages.install(asked.library)
memory = pages.Pages(8 * COUNT)
keep = hbmcomm.Communicator(**PLACE)  # as in any program with two communicators
comm = hbmcomm.Communicator(**PLACE)
x, y = np.empty(COUNT), memory.array.view("f8")
if asked.sent_from == "arena":
    x = comm.empty(COUNT, "f8")
x[:] = 1.0 + RANK


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
    """What rank 0 may be given now must not be what the others read."""
    global own, x
    x = None
    own = [hbmcomm.Communicator(MPI.COMM_SELF, **PLACE) for _ in range(8)]
    for communicator in own:
        communicator.Allreduce(np.ones(COUNT), np.zeros(COUNT))
    own += [keep.full(COUNT, 7.0, "f8") for _ in range(8)]
    time.sleep(2 * SLOW)


def report() -> None:
    last = RANK if CALL == "Scan" else SIZE - 1
    wrong = 0 if CALL == "Reduce" and RANK != 1 else int((y != sum(range(last + 2))).sum())
    print(f"rank {RANK}: {'right' if not wrong else f'{wrong} entries are wrong'}", flush=True)


def wait_for_the_end(process: int) -> None:
    """A rank that exited before rank 0 is done would be a lost peer of rank 0."""
    with contextlib.suppress(OSError):
        while Path(f"/proc/{process}/stat").read_text().rsplit(") ")[-1][0] not in "ZX":
            time.sleep(0.01)


leaver = MPI.COMM_WORLD.bcast(os.getpid())
call()  # all buffers exist now
y[:] = 0
MPI.COMM_WORLD.Barrier()
if RANK:
    memory.make_slow(np.random.default_rng(0), SLOW)
    try:
        call()
        report()
    except hbmcomm.PeerError as error:  # the rank died: an error is right, wrong data is not
        print(f"rank {RANK}: {error}", flush=True)
    if WAY == "freed":
        comm.Free()
    if WAY in ENDS:  # MPI's end waits for all ranks
        sys.exit()
    if WAY == "signal":  # however late rank 0 is, these are there as long as it needs them
        wait_for_the_end(leaver)
    else:
        MPI.COMM_WORLD.Barrier()
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
MPI.COMM_WORLD.Barrier()
os._exit(0)
