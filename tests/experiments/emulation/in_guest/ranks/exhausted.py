"""Rank program: every rank asks for more HBM than there is, at once and bit by bit, and lives to
tell.

Usage: exhausted.py FOLDER MIB. Rank 0 writes what every rank met to FOLDER/found.json.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.programs import rank_process

WORLD = MPI.COMM_WORLD
SMALL = 2**20
BIT = 16 * 2**20


def take_all(empty: Callable[[int, str], Any]) -> tuple[int, str]:
    """Bytes that were had before the refusal, in bits, and its words.

    Nothing is given back before every rank has been refused.
    """
    held: list[Any] = []
    refusal = ""
    while not refusal:
        try:
            held.append(empty(BIT, "u1"))
            held[-1][:] = 1
        except hbmcomm.HbmcommError as error:
            refusal = f"{type(error).__name__}: {error}"
    WORLD.Barrier()
    return len(held) * BIT, refusal


def main(folder: Path) -> None:
    rank_process.pin(WORLD.rank, "packed")
    nbytes = int(sys.argv[2]) * 2**20
    met: dict[str, Any] = {}
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
        # both ways of having memory at the same time, each looking before the other has taken
        ways = (comm.empty, partial(hbmcomm.empty, kind="hbw"))
        met["taken"], met["refusal"] = take_all(ways[WORLD.rank % 2])
        WORLD.Barrier()  # all has been given back
        # what was refused took nothing: there is room, and the ranks still understand each other
        x, y = comm.full(SMALL // 4, WORLD.rank + 1, "int32"), comm.empty(SMALL // 4, "int32")
        comm.Allreduce(x, y)
        assert (y == np.arange(1, WORLD.size + 1).sum()).all()
        met["after"] = hbmcomm.placement(y)
    ranks = WORLD.gather(met)
    if ranks:
        (folder / "found.json").write_text(json.dumps(ranks), encoding="utf-8")


rank_process.run(main, Path(sys.argv[1]))
