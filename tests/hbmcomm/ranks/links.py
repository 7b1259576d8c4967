"""Rank program: on two emulated NUMA nodes, each byte crosses from one to the other once.

The ranks are told that they sit on two nodes; the core counts what it carries between them.
"""

import sys

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.collectives import core, direct

N = 300_001  # more than a piece, and no round number
WORLD = MPI.COMM_WORLD
RANKS, RANK = WORLD.size, WORLD.rank
FIRST_NODE = RANKS // 2


def emulated() -> core.Setting:
    return core.setting()._replace(node=int(RANK >= FIRST_NODE))


def crossed(comm: Communicator, before: int) -> int:
    return WORLD.allreduce(comm._state.link_bytes - before)  # type: ignore[attr-defined]


direct.setting = emulated
comm = Communicator(WORLD, transport="direct")
for root in range(RANKS):
    x = comm.full(N, RANK, "float32")
    before = comm._state.link_bytes  # type: ignore[attr-defined]
    comm.Bcast(x, root=root)
    assert (x == root).all(), root
    assert crossed(comm, before) == x.nbytes, root

x, y = comm.full(N, RANK, "float32"), comm.full((RANKS, N), -1, "float32")
before = comm._state.link_bytes  # type: ignore[attr-defined]
comm.Allgather(x, y)
assert (y == np.arange(RANKS)[:, None]).all()
there, here = RANKS - FIRST_NODE, FIRST_NODE
assert crossed(comm, before) == x.nbytes * (there + here)  # each block once, to the other node

y[:] = -1
y[RANK] = RANK
comm.Allgather(MPI.IN_PLACE, y)
assert (y == np.arange(RANKS)[:, None]).all()

ordinary = np.full(N, RANK, "float32")
comm.Bcast(ordinary, root=RANKS - 1)
assert (ordinary == RANKS - 1).all()
comm.Free()
sys.stdout.write("once\n")
