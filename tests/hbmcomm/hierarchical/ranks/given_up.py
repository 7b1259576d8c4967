"""Rank program, by on_hosts.py 0,1,0,1: an error ends a `with` block with a call in flight.

Rank 2 waits on its engine's thread for bytes that rank 3 never sends. Rank 0, on the same host, is
in a later call and waits for rank 2 in the core.
"""

import time

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError
from tests.hbmcomm.ranks.ending import say

WORLD = MPI.COMM_WORLD
RANK, RANKS, NBYTES = WORLD.rank, WORLD.size, 2**22
x, y = np.ones(NBYTES, "u1"), np.zeros(NBYTES, "u1")
sent = [NBYTES * (peer == 2 and RANK == 3) for peer in range(RANKS)]
received = [NBYTES * (peer == 3 and RANK == 2) for peer in range(RANKS)]


class OtherError(Exception):
    """Nothing to do with collectives."""


comm = Communicator(WORLD, "regular", "hierarchical")
comm.Barrier()
try:
    with comm:
        if RANK == 2:
            request = comm.Ialltoallv([x, sent], [y, received])
            time.sleep(0.5)
            raise OtherError("this rank gives up")
        if RANK == 3:
            time.sleep(1)
        else:
            comm.Alltoallv([x, sent], [y, received])
        comm.Allreduce(x, y)
except (OtherError, HbmcommError) as error:
    say(f"rank {RANK} ended: {type(error).__name__}")
if RANK == 2:
    try:
        request.Wait()
    except HbmcommError as error:
        say(f"its request: {error}")
