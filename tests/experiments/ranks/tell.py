"""Rank program: writes what report() and probe() find to a file, as JSON; "ranks" has all probes.

With the word "talk" it then sends messages of every size between the lines "begin" and "end".
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from experiments.machine.datapath import SIZES, probe, report

comm = MPI.COMM_WORLD
out, *words = sys.argv[1:]


def talk(times: int) -> None:
    arrays = [np.ones(size, np.uint8) for size in (8, *SIZES.values())]
    for _ in range(times):
        for array in arrays:
            comm.Bcast(array)
            comm.Allreduce(MPI.IN_PLACE, array, MPI.MAX)
    time.sleep(0.5)  # until the output of every rank has come out


datapath = {"told": report(comm), **(own := probe(comm)), "ranks": comm.gather(own)}
if comm.rank == 0:
    Path(out).write_text(json.dumps(datapath))
if words == ["talk"]:
    talk(2)
    for word in ("begin", "end"):
        comm.Barrier()
        if comm.rank == 0:
            print(word, flush=True)
        talk(20 if word == "begin" else 0)
