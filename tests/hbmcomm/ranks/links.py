"""Rank program: on two emulated NUMA nodes, each byte crosses as often as `crossings` has it.

The ranks see themselves on two nodes; the core counts what it carries between them. Each
rank prints "counted" when all held.
"""

import sys

import crossings
import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.transports import native, opening

WORLD = MPI.COMM_WORLD
RANKS, RANK = WORLD.size, WORLD.rank
NODES = [int(rank >= RANKS // 2) for rank in range(RANKS)]
EVERY = np.arange(RANKS)[:, None]


def emulated() -> native.Setting:
    found = native.setting()
    return found._replace(place=found.place._replace(node=NODES[RANK]))


def check(comm: Communicator, n: int) -> None:
    x, y = comm.full(n, RANK, "float32"), comm.full((RANKS, n), -1, "float32")
    for root in range(RANKS):
        x[:] = RANK
        found = crossings.counted(comm, lambda root=root: comm.Bcast(x, root=root))
        assert (x == root).all(), root
        assert found == x.nbytes * crossings.expected(NODES, root), (n, root, found)
    x[:] = RANK
    found = crossings.counted(comm, lambda: comm.Allgather(x, y))
    assert (y == EVERY).all()
    every = sum(crossings.expected(NODES, giver) for giver in range(RANKS))
    assert found == x.nbytes * every, (n, found)


opening.setting = emulated
comm = Communicator(WORLD, transport="direct")
for n in crossings.SIZES:
    check(comm, n)
comm.Free()
sys.stdout.write("counted\n")
