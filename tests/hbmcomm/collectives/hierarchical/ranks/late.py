"""Rank program, by on_hosts.py: calls in other words, while one rank is late, are the same."""

import time

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import say

WORLD = MPI.COMM_WORLD
LATE = 1.3  # seconds, after which ranks that wait tell the others in which call

comm = Communicator(WORLD, "regular", "hierarchical")
x, all_of_them = np.ones(2), np.zeros(2 * comm.size)
one, many = (x, all_of_them) if comm.rank else ([x, MPI.DOUBLE], [all_of_them, MPI.DOUBLE])
comm.Barrier()
for call, arguments in (
    (comm.Gather, (one, many if comm.rank == 0 else None)),
    (comm.Scatter, (many if comm.rank == 0 else None, one)),
    (comm.Allgather, (one, many)),
):
    if comm.rank == comm.size - 1:
        time.sleep(LATE)
    call(*arguments)
comm.Barrier()
assert (all_of_them == 1).all()
comm.Free()
say("alike")
