"""Rank program: two ranks in each quadrant, on real NUMA nodes; every collective is right, and in
Bcast and Allgather each byte of a message crosses to every other node once.

Nothing is emulated here but the machine: the nodes are those that the kernel shows, and a count is
the core's own. Each rank prints "right" when all held.
"""

import sys
from pathlib import Path

import crossings
import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.programs import rank_process
from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
RANKS, RANK = WORLD.size, WORLD.rank
EVERY = np.arange(RANKS)


def counted(comm: Communicator, n: int, often: int) -> None:
    """Bcast and Allgather: how often each byte goes to another node, by the core's count."""
    x, y = comm.full(n, 0, "float32"), comm.zeros((RANKS, n), "float32")
    for root in (0, RANKS - 1):
        x[:] = RANK
        crossed = crossings.counted(comm, lambda root=root: comm.Bcast(x, root=root))
        assert (x == root).all(), root
        assert crossed == x.nbytes * often, ("Bcast", n, crossed)
    x[:] = RANK
    crossed = crossings.counted(comm, lambda: comm.Allgather(x, y))
    assert (y == EVERY[:, None]).all(), "Allgather"
    assert crossed == x.nbytes * RANKS * often, ("Allgather", n, crossed)


def right(comm: Communicator, n: int, persistent: bool) -> None:
    """All collectives, as calls or as plans that are started twice."""

    def do(name: str, *arguments: object, **others: object) -> None:
        if not persistent:
            getattr(comm, name)(*arguments, **others)
            return
        plan = getattr(comm, f"{name}_init")(*arguments, **others)
        for _ in range(2):
            plan.Start()
            plan.Wait()

    one, many = comm.full(n, RANK, "float32"), comm.zeros((RANKS, n), "float32")
    more, root = comm.zeros((RANKS, n), "float32"), RANKS // 2
    do("Barrier")
    do("Allgather", one, many)
    assert (many == EVERY[:, None]).all(), "Allgather"
    many[:] = RANK * RANKS + EVERY[:, None]
    do("Alltoall", many, more)
    assert (more == EVERY[:, None] * RANKS + RANK).all(), "Alltoall"
    do("Scatter", many, one, root=root)
    assert (one == root * RANKS + RANK).all(), "Scatter"
    do("Gather", one, more, root=root)
    assert root != RANK or (more == root * RANKS + EVERY[:, None]).all(), "Gather"
    do("Bcast", one, root=root)
    assert (one == root * RANKS + root).all(), "Bcast"
    one[:] = RANK
    do("Reduce", one, more[0], op=MPI.SUM, root=root)
    assert root != RANK or (more[0] == EVERY.sum()).all(), "Reduce"
    do("Allreduce", one, more[1], op=MPI.MAX)
    assert (more[1] == RANKS - 1).all(), "Allreduce"
    do("Reduce_scatter_block", many, one, op=MPI.SUM)
    assert (one == (EVERY * RANKS + RANK).sum()).all(), "Reduce_scatter_block"


def main(_folder: Path) -> None:
    cpu = rank_process.pin(RANK, "packed")
    topology = hbmcomm.topology()
    nodes = WORLD.allgather(topology.node_of_cpu(cpu))
    assert nodes == sorted(nodes) and 2 * len(set(nodes)) == RANKS, nodes
    with Communicator(WORLD, kind="hbw", transport="direct") as comm:
        short, middle, long = crossings.SIZES
        for n in (short, long):
            right(comm, n, persistent=False)
            right(comm, n, persistent=True)
        for n in (short, middle, long):
            counted(comm, n, often=len(set(nodes)) - 1)
        here = hbmcomm.placement(comm.full(long, RANK, "float32"))
        assert set(here) == {topology.nearest(nodes[RANK], among=topology.hbm.nodes)[0]}, here
    sys.stdout.write("right\n")


rank_process.run(main, Path())
