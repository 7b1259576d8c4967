"""Rank program: arrays in C and in Fortran order, also mixed, give what they give with mpi4py.

Collectives move memory: an array like another must keep its order, or results are permuted.
Usage: orders.py TRANSPORT...
"""

import itertools
import sys
from collections.abc import Callable
from typing import Any

import ending
import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, empty_like

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
ROOTED = ("Gather", "Scatter", "Reduce")
NAMES = (*ROOTED, "Allgather", "Alltoall", "Allreduce", "Reduce_scatter_block", "Scan", "Exscan")
SHAPE = (3, 4)


def shapes(name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of what is sent and of what is received."""
    many = (RANKS, *SHAPE)
    sent = many if name in ("Scatter", "Alltoall", "Reduce_scatter_block") else SHAPE
    return sent, many if name in ("Gather", "Allgather", "Alltoall") else SHAPE


def results(comm: Any, orders: tuple[str, str], make: Callable[..., Any]) -> list[Any]:
    found = []
    for name in NAMES:
        x, y = (make(shape, order) for shape, order in zip(shapes(name), orders, strict=True))
        x[...] = np.arange(x.size).reshape(x.shape) * (RANK + 1)
        y[...] = -1
        getattr(comm, name)(x, y)
        found.append(y.tolist())
    root = make(SHAPE, orders[RANK > 0])
    root[...] = np.arange(12.0).reshape(SHAPE) * (RANK == 0)
    comm.Bcast(root)
    x, y = make(SHAPE, orders[0]), make(SHAPE, orders[1])
    x[...] = np.arange(12.0).reshape(SHAPE)
    comm.Iallreduce(x, y).Wait()
    return [*found, root.tolist(), y.tolist()]


for transport in sys.argv[1:]:
    with Communicator(WORLD, "regular", transport) as comm:

        def in_arena(shape: tuple[int, ...], order: str, comm: Any = comm) -> Any:
            return comm.empty_like(np.empty(shape, order=order))

        def ordinary(shape: tuple[int, ...], order: str) -> Any:
            return np.empty(shape, order=order)

        for orders in itertools.product("CF", "CF"):
            due = results(WORLD, orders, ordinary)
            for make in (ordinary, in_arena):
                assert results(comm, orders, make) == due, (transport, orders, make)
        x = np.asfortranarray(np.arange(12.0).reshape(SHAPE))
        for y in (comm.empty_like(x), comm.zeros_like(x), comm.ones_like(x), empty_like(x)):
            comm.Allreduce(x, y)
            assert (y == RANKS * x).all(), transport
            comm.Allreduce(comm.asarray(x), y)
            assert (y == RANKS * x).all(), transport
    ending.say(f"{transport}: in order")
