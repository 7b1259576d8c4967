"""Rank program on hosts: what links carry for one Allreduce of float32 by transport hierarchical.

Usage: carried.py BYTES. Rank 0 prints "carried LEAST MOST", bytes over the hosts.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import say
from tests.hbmcomm.ranks.link import sent

WORLD = MPI.COMM_WORLD
CALLS = 3


def quiet() -> int:
    """What the link has sent, once nothing is on its way."""
    WORLD.Barrier()
    time.sleep(0.05)
    nbytes = sent()
    WORLD.Barrier()
    return nbytes


with Communicator(WORLD, "regular", "hierarchical") as comm:
    x = np.ones(int(sys.argv[1]) // 4, "f")
    y = np.zeros_like(x)
    comm.Allreduce(x, y)
    assert (y == WORLD.size).all()
    before = quiet()
    for _ in range(CALLS):
        comm.Allreduce(x, y)
    per_call = (quiet() - before) / CALLS
    least, most = (WORLD.allreduce(per_call, op) for op in (MPI.MIN, MPI.MAX))
if WORLD.rank == 0:
    say(f"carried {least} {most}")
