"""Rank program on hosts: calls until a host is gone; each rank writes what it saw and when.

Usage: vanish.py FOLDER. Rank 0 makes the file `going` there once calls work.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, PeerError

FOLDER = Path(sys.argv[1])

# MPICH's launcher announces the end of a rank by it, and MPICH then asks a launcher that is cut off
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
comm = Communicator(MPI.COMM_WORLD)
x, y = np.ones(50_000, "f"), np.zeros(50_000, "f")
comm.Allreduce(x, y)
if comm.rank == 0:
    (FOLDER / "going").touch()
began = time.monotonic()
words = "nothing seen"
try:
    while time.monotonic() - began < 30:
        comm.Allreduce(x, y)
except PeerError as error:
    words = f"PeerError: {error}"
(FOLDER / f"{comm.transport}-{comm.rank}").write_text(f"{time.time()} {words}", "utf-8")
os._exit(0)
