"""Rank 1 ends while rank 0 waits for it: `deaths.py TRANSPORT WAIT`, which says what for."""

import os
import signal
import sys
import time

from mpi4py import MPI

import hbmcomm
from hbmcomm.training.regions import Regions

_, transport, wait = sys.argv
comm = hbmcomm.Communicator(MPI.COMM_WORLD, kind="regular", transport=transport)
regions = Regions(comm)
if comm.rank == 1:
    if wait == "release":
        own = regions.allocate(0, {"x": 8})["x"]
        own.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
began = time.monotonic()
try:
    remote = regions.open(1)["x"]  # waits for the offer
    remote.array(1)[:] = 1.0
    remote.post()
    remote.array(1)  # waits for the release
except hbmcomm.PeerError as error:
    print(f"after {time.monotonic() - began:.1f} s: {error}", flush=True)
os._exit(0)  # MPI's own end would wait for the other rank
