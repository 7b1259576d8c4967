"""Rank program: every rank asks for more HBM than there is, and lives to tell.

Usage: exhausted.py FOLDER MIB. Rank 0 writes what every rank met to FOLDER/found.json.
"""

import json
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.emulated.question import FOUND
from experiments.measure import process

WORLD = MPI.COMM_WORLD
SMALL = 2**20


def main(folder: Path) -> None:
    process.pin(WORLD.rank, "packed")
    nbytes = int(sys.argv[2]) * 2**20
    met = {}
    with hbmcomm.Communicator(WORLD, kind="hbw", transport="direct") as comm:
        for name, empty in (
            ("private", lambda: hbmcomm.empty(nbytes, "u1", kind="hbw")),
            ("arena", lambda: comm.empty(nbytes, "u1")),
        ):
            try:
                empty()
                met[name] = ""
            except hbmcomm.HbmcommError as error:
                met[name] = f"{type(error).__name__}: {error}"
        # what was refused took nothing: there is room, and the ranks still understand each other
        x, y = comm.full(SMALL // 4, WORLD.rank + 1, "int32"), comm.empty(SMALL // 4, "int32")
        comm.Allreduce(x, y)
        assert (y == np.arange(1, WORLD.size + 1).sum()).all()
        met["after"] = hbmcomm.placement(y)
    ranks = WORLD.gather(met)
    if ranks:
        (folder / FOUND).write_text(json.dumps(ranks), encoding="utf-8")


process.run(main, Path(sys.argv[1]))
