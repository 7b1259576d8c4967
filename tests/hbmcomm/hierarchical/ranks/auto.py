"""Rank program, by on_hosts.py with hosts 0,1,0,2: auto takes what fits each communicator's ranks.

Prints "fits" on each rank. Without threads in MPI, plans between hosts are MPI's.
"""

from mpi4py import MPI
from numpy import ones, zeros

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
HOST = (0, 1, 0, 2)[WORLD.rank]


def takes(comm: Communicator, transport: str) -> None:
    y = zeros(9)
    comm.Allreduce(ones(9), y)
    assert (y == comm.size).all()
    y[:] = 0
    comm.Allreduce_init(ones(9), y)()
    assert (y == comm.size).all()
    assert comm.transport == transport, comm
    comm.Free()


moving_on()
everyone = Communicator(WORLD)
assert everyone.transport == "hierarchical"
takes(everyone.Dup(), "hierarchical")
takes(everyone.Split(HOST), "direct")
takes(everyone.Split(WORLD.rank == 0, -WORLD.rank), "direct" if WORLD.rank == 0 else "mpi")
later, request = everyone.Idup()
request.Wait()
takes(later, "hierarchical")
takes(everyone.Create_cart([2, 2]), "hierarchical")
takes(everyone, "hierarchical")
say("fits")
