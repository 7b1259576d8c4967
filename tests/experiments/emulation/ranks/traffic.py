"""Ranks say where they are, and move bytes between hosts and within them.

traffic.py BYTES: each rank prints its host, its peers there, and the sum of BYTES from rank 0.
traffic.py within BYTES: an Allreduce among the ranks of each host, over memory that they share.
"""

import socket
import sys

import numpy as np
from mpi4py import MPI

import hbmcomm


def across(count: int) -> str:
    """Broadcast ones from rank 0 to all ranks."""
    world = MPI.COMM_WORLD
    data = np.full(count, int(world.rank == 0), "uint8")
    world.Bcast(data)
    peers = world.allgather(socket.gethostname()).count(socket.gethostname())
    return f"{world.size} {peers} {data.sum(dtype=int)}"


def within(count: int) -> str:
    """Add up among the ranks of this host, many times the same memory."""
    names = sorted(set(MPI.COMM_WORLD.allgather(socket.gethostname())))
    node = MPI.COMM_WORLD.Split(names.index(socket.gethostname()))
    with hbmcomm.Communicator(node, transport="direct") as comm:
        data = comm.full(count // 4, 1, "float32")
        total = comm.empty_like(data)
        for _ in range(10):
            comm.Allreduce(data, total)
        return f"{comm.transport} {comm.size} {total.min():.0f} {total.max():.0f}"


if __name__ == "__main__":
    *how, size = sys.argv[1:]
    said = within(int(size)) if how else across(int(size))
    line = f"rank {MPI.COMM_WORLD.rank} on {socket.gethostname()}: {said}\n"
    sys.stdout.write(line)
    sys.stdout.flush()
