"""Rank program on the hosts 0, 0, 1: ranks share arrays with those of their own host alone."""

from mpi4py import MPI

import hbmcomm
from tests.hbmcomm.ranks.refusal import refused

with hbmcomm.Communicator(kind="regular") as comm:
    assert comm.transport == "hierarchical"
    own, near = comm.full(3, comm.rank, "u8"), (2,) if comm.rank == 2 else (0, 1)
    assert comm.arena_ranks == near
    names = comm.allgather(comm.share(own))
    for rank in near:
        assert (comm.attach(names[rank]) == rank).all()
    far = 0 if comm.rank == 2 else 2
    for act in (lambda: comm.attach(names[far]), lambda: comm.flags(own, far)):
        with refused(hbmcomm.ArenaUnavailable, f"rank {far} shares no memory with rank"):
            act()
    comm.Barrier()
    if comm.rank == 0:
        comm.flags(own[:1]).raise_to(7)
    elif comm.rank == 1:
        comm.flags(comm.attach(names[0])[:1], 0).wait(7)
    comm.Barrier()
print(f"rank {MPI.COMM_WORLD.rank}: shared", flush=True)
