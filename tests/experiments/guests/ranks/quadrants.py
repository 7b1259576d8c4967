"""Rank program: two ranks in each quadrant, on real NUMA nodes; every collective is right, and in
Bcast and Allgather each byte crosses from node to node once.

Nothing is emulated here but the machine: the nodes are those that the kernel shows. Each rank
prints "right" when all held.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.measure import process
from hbmcomm import Communicator

SIZES = (30, 80_001)  # elements: in a slot; more than a piece of 256 KiB, and no round number
WORLD = MPI.COMM_WORLD
RANKS, RANK = WORLD.size, WORLD.rank
EVERY = np.arange(RANKS)


def crossed(comm: Communicator, before: int) -> int:
    """Bytes that all ranks together have carried between nodes since."""
    return WORLD.allreduce(comm._state.link_bytes - before)  # type: ignore[attr-defined]


def carried(comm: Communicator) -> int:
    return comm._state.link_bytes  # type: ignore[attr-defined,no-any-return]


def counted(comm: Communicator, n: int, nodes: int) -> None:
    """Bcast and Allgather, by the core's count of bytes that go from node to node."""
    x, y = comm.full(n, 0, "float32"), comm.zeros((RANKS, n), "float32")
    for root in (0, RANKS - 1):
        x[:] = RANK
        before = carried(comm)
        comm.Bcast(x, root=root)
        assert (x == root).all(), root
        assert crossed(comm, before) == x.nbytes * (nodes - 1), "Bcast"
    x[:] = RANK
    before = carried(comm)
    comm.Allgather(x, y)
    assert (y == EVERY[:, None]).all(), "Allgather"
    assert crossed(comm, before) == x.nbytes * RANKS * (nodes - 1), "Allgather"


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
    cpu = process.pin(RANK, "packed")
    topology = hbmcomm.topology()
    nodes = WORLD.allgather(topology.node_of_cpu(cpu))
    assert nodes == sorted(nodes) and 2 * len(set(nodes)) == RANKS, nodes
    with Communicator(WORLD, kind="hbw", transport="direct") as comm:
        for n in SIZES:
            right(comm, n, persistent=False)
            right(comm, n, persistent=True)
        counted(comm, SIZES[-1], len(set(nodes)))
        here = hbmcomm.placement(comm.full(SIZES[-1], RANK, "float32"))
        assert set(here) == {topology.nearest(nodes[RANK], among=topology.hbm.nodes)[0]}, here
    sys.stdout.write("right\n")


process.run(main, Path())
