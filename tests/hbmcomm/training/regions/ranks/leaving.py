"""Rank program: one end of a region leaves while the other one is slow and still uses the region.

    mpiexec -n 2 python leaving.py WAY WHO TRANSPORT

WHO is "consumer", rank 0, or "producer", rank 1. After the first tensor it leaves in some way; then
it uses all memory that it could get. A slow producer writes the next tensor meanwhile; a slow
consumer reads the first one only then.
"""

import gc
import os
import signal
import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm.training.regions import Regions

_, WAY, WHO, TRANSPORT = sys.argv
COUNT = 128 * 1024  # of float64: 1 MiB
SLOW = 0.6  # seconds
WORLD = MPI.COMM_WORLD
ENDS = ("sys.exit", "exception")
GOES_ON = ("collected", "error in with")
LEAVES = (WHO == "consumer") == (WORLD.rank == 0)

keep = hbmcomm.Communicator(kind="regular", transport=TRANSPORT)
regions: Any = Regions(hbmcomm.Communicator(kind="regular", transport=TRANSPORT))


def leave() -> None:
    global regions, region
    if WAY == "error in with":
        try:
            with regions:
                raise ValueError("an error of the program")
        except ValueError:
            pass
    elif WAY == "collected":
        regions = region = None
    elif WAY == "closed":
        regions.close()
    elif WAY == "sys.exit":
        sys.exit()
    elif WAY == "exception":
        raise SystemExit("an error that ends the program")
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def use_memory() -> None:
    """What this rank may be given now is not what the other one still uses."""
    global regions, region
    regions = region = None
    gc.collect()
    others = [keep.full(COUNT, 7.0, "f8") for _ in range(16)]
    if WAY in GOES_ON:
        WORLD.send(None, 1 - WORLD.rank)
    time.sleep(2 * SLOW)
    wrong = sum(int((array != 7).sum()) for array in others)
    print(f"rank {WORLD.rank}: {f'{wrong} are not mine' if wrong else 'mine'}", flush=True)


def consume() -> None:
    wrong = int((region.wait() != 5).sum())
    print(f"rank 0: {f'{wrong} entries are wrong' if wrong else 'right'}", flush=True)
    region.release()


def produce() -> None:
    array[:] = 5
    region.post()


def await_other() -> None:
    """Wait until the other rank has left, and has used its memory, as far as it can say so."""
    if WAY in GOES_ON:
        WORLD.recv(None, 1 - WORLD.rank)
    else:
        time.sleep(SLOW)


if WORLD.rank == 0:
    region: Any = regions.allocate(1, {"x": 8 * COUNT})["x"]
else:
    region = regions.open(0)["x"]
    region.write(np.full(COUNT, 5.0))
if WORLD.rank == 0 and LEAVES:
    consume()
elif WORLD.rank == 1 and not LEAVES:
    array = region.array(COUNT, "f8")
WORLD.Barrier()
if LEAVES:
    leave()
    use_memory()
else:
    await_other()
    try:
        (produce if WORLD.rank else consume)()
        print(f"rank {WORLD.rank}: done", flush=True)
        if WAY == "closed":
            regions.close()
    except hbmcomm.PeerError as error:  # right, where the other rank is gone; wrong data is not
        print(f"rank {WORLD.rank}: {error}", flush=True)
    time.sleep(SLOW)
    if WAY in ENDS:  # MPI's end waits for all ranks
        sys.exit()
os._exit(0)
