"""Rank program: the last rank dies during training; each other one writes what it saw.

Usage: dies.py FOLDER
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hbmcomm import PeerError
from hbmcomm.training.daso import Arrays, Daso, Schedule

comm = MPI.COMM_WORLD
x, g = np.zeros(50_000), np.ones(50_000)
daso = Daso(Arrays([x], [g], lambda: None), comm, Schedule(1, warmup=0, cooldown=0))
words = "nothing seen"
began = time.monotonic()
try:
    while time.monotonic() - began < 30:
        if comm.rank == comm.size - 1 and daso.schedule.batch == 10:
            os._exit(1)
        daso.step()
except PeerError:
    words = f"PeerError on {daso.hosts} hosts"
Path(sys.argv[1], f"{comm.rank}").write_text(words, "ascii")
os._exit(0)
