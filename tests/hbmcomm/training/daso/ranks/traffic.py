"""Rank program on hosts: bytes that this host sends in a blocking epoch and in one of DASO."""

import numpy as np
from mpi4py import MPI

from hbmcomm.training.daso import Arrays, Daso, Schedule
from tests.hbmcomm.ranks.link import sent

BATCHES, ELEMENTS = 32, 100_000
comm = MPI.COMM_WORLD


x, g = np.zeros(ELEMENTS, "f"), np.ones(ELEMENTS, "f")
with Daso(Arrays([x], [g], lambda: None), comm, Schedule(2, 1, 0, skips=8)) as daso:
    comm.Barrier()
    counts = [sent()]
    for _ in range(2):
        for _ in range(BATCHES):
            daso.step()
        daso.end_epoch(1.0)
        comm.Barrier()
        counts.append(sent())
    blocking, selective = np.diff(counts)
    if daso.hosts == 2:
        print(f"sent {blocking} {selective}", flush=True)
