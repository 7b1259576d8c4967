"""Rank program, by on_hosts.py 0,1,0,2: calls in other words, while one rank is late, are the same.

Rank 1 leaves before the late rank 3 takes part in the last call; rank 0 waits for that one alone.
"""

import time

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.hierarchical import watch
from tests.hbmcomm.ranks.ending import say

WORLD = MPI.COMM_WORLD
LATE = 1.3  # seconds, after which ranks that wait report their call to the others
watch._GRACE = 0.5  # seconds after which a rank that left is missed

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
if comm.rank == comm.size - 1:
    time.sleep(LATE)
total = np.zeros(2) if comm.rank == 0 else None
comm.Reduce(x, total, root=0)
assert total is None or (total == comm.size).all()
comm.Free()
say("alike")
