"""Rank program, by on_hosts.py: the last rank makes another call; every rank must get an error.

Prints a line with the error on each rank.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator, PeerError
from tests.hbmcomm.ranks.ending import say

WORLD = MPI.COMM_WORLD
BYTES = int(sys.argv[1])
CALLS = 500  # which a root can make before others take part, if they are short

comm = Communicator(WORLD, "regular", "hierarchical")
x, y = np.ones(BYTES // 8), np.zeros(BYTES // 8)
comm.Allreduce(x, y)
comm.bcast("a call of MPI")
began = time.monotonic()
try:
    for _ in range(CALLS):
        time.sleep(0.01)
        if WORLD.rank == WORLD.size - 1:
            comm.Bcast(x, root=WORLD.rank)
        else:
            comm.Allreduce(x, y)
except (CallMismatch, PeerError) as error:
    seconds = time.monotonic() - began
    say(f"after {seconds:.1f} s {type(error).__name__}: {error}")
MPI.COMM_WORLD.Barrier()
time.sleep(0.2)
MPI.COMM_WORLD.Abort(3)  # requests are pending that no rank can complete
