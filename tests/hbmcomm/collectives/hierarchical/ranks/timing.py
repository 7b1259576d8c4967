"""Rank program on hosts: how long calls take, and what their links carry.

Usage: timing.py RATE TURNS SIZE... with the links' rate in bit/s and sizes in bytes. Transports mpi
and hierarchical take turns; each turn is one Allreduce of float32 after an untimed one. Rank 0
prints a line of JSON for each size: seconds by transport (median of the maximum over ranks), the
bound of the links, and bytes that a link sent for one call, the least and the most over hosts.
"""

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
LINK = "eth0"


def sent() -> int:
    """Bytes that the link of this host has sent."""
    for line in Path("/proc/self/net/dev").read_text("ascii").splitlines():
        name, _, values = line.strip().partition(":")
        if name == LINK:
            return int(values.split()[8])
    raise LookupError(f"this host has no {LINK}")


def quiet() -> int:
    """What the link has sent, once nothing is on its way."""
    WORLD.Barrier()
    time.sleep(0.05)
    found = sent()
    WORLD.Barrier()
    return found


def seconds(comm: Any, x: Any, y: Any) -> float:
    WORLD.Barrier()
    time.sleep(0.002)
    WORLD.Barrier()
    began = time.perf_counter()
    comm.Allreduce(x, y)
    return float(WORLD.allreduce(time.perf_counter() - began, MPI.MAX))


def carried(comm: Any, x: Any, y: Any, calls: int) -> tuple[float, float]:
    """Bytes that a link sends for one call: the least and the most over hosts."""
    before = quiet()
    for _ in range(calls):
        comm.Allreduce(x, y)
    each = (quiet() - before) / calls
    return float(WORLD.allreduce(each, MPI.MIN)), float(WORLD.allreduce(each, MPI.MAX))


def main(rate: float, turns: int, sizes: list[int]) -> None:
    ours = Communicator(WORLD, "regular", "hierarchical")
    ways: dict[str, Any] = {"mpi": WORLD, "hierarchical": ours}
    assert ours._ways is not None
    hosts = len(ours._ways.layout.hosts)
    for nbytes in sizes:
        moving_on()
        x, y = np.ones(nbytes // 4, "f"), np.zeros(nbytes // 4, "f")
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(turns):
            for name, comm in ways.items():
                comm.Allreduce(x, y)
                found[name].append(seconds(comm, x, y))
                assert (y == WORLD.size).all()
        links = {name: carried(comm, x, y, 3) for name, comm in ways.items()}
        if WORLD.rank == 0:
            bound = 2 * (hosts - 1) / hosts * nbytes
            medians = {name: statistics.median(each) for name, each in found.items()}
            line = {"bytes": nbytes, "bound_s": bound * 8 / rate, "bound_bytes": bound}
            say(json.dumps({**line, "seconds": medians, "links": links}))
    ours.Free()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), [int(size) for size in sys.argv[3:]])
