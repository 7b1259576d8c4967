"""Rank program, by on_hosts.py: arguments that MPI refuses leave the communicator usable."""

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import say
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
comm = Communicator(WORLD, "regular", "hierarchical")
x, y = np.ones(4), np.zeros(4)
fixed = np.zeros(4)
fixed.flags.writeable = False
comm.Allreduce(x, y)
for attempt in (
    lambda: comm.Bcast(x, root=99),
    lambda: comm.Reduce(x, y, root=-5),
    lambda: comm.Allreduce(x, fixed),
    lambda: comm.Allreduce(x, np.zeros(3)),
    lambda: comm.Allgather(x, np.zeros(3)),
    lambda: comm.Alltoall(np.zeros(5), np.zeros(5)),
    lambda: comm.Allreduce(x, y, MPI.BAND),
    lambda: comm.Allreduce(MPI.IN_PLACE, y, MPI.BXOR),
    lambda: comm.Reduce(x.astype("D"), np.zeros(4, "D"), MPI.MAX, comm.size - 1),
):
    with refused((ValueError, TypeError, BufferError, MPI.Exception)):
        attempt()
comm.Bcast(fixed if comm.rank == 1 else x, root=1)
assert comm.rank == 1 or (x == 0).all()
comm.Allreduce(MPI.IN_PLACE, y)
assert (y == comm.size**2).all()
comm.Allreduce(y, y)  # hbmcomm takes this for in place
assert (y == comm.size**3).all()
comm.Free()
say("usable")
