"""Rank program: messages of every size between the lines "begin" and "end"."""

import time

import numpy as np
from mpi4py import MPI

from experiments.programs.machine.copies import SIZES

comm = MPI.COMM_WORLD
arrays = [np.ones(size, np.uint8) for size in (8, *SIZES.values())]


def talk(times: int) -> None:
    for _ in range(times):
        for array in arrays:
            comm.Bcast(array)
            comm.Allreduce(MPI.IN_PLACE, array, MPI.MAX)


talk(2)
time.sleep(0.5)  # what every rank has said so far has come out
for word in ("begin", "end"):
    comm.Barrier()
    if comm.rank == 0:
        print(word, flush=True)
    talk(20 if word == "begin" else 0)
    time.sleep(0.5)
