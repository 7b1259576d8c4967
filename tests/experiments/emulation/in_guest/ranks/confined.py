"""Rank program: what ranks get of HBM where they may not use all of it, or not bind to it at all.

Usage: confined.py FOLDER OTHER, where OTHER is an HBM node that is not theirs. Rank 0 writes what
every rank met to FOLDER/found.json.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.emulation.check import look
from experiments.machine import facts
from experiments.programs import rank_process

NBYTES = 64 * 1024
WORLD = MPI.COMM_WORLD


def refusal(ask: Callable[[], Any]) -> str:
    """The words of the error; "" where there is none."""
    try:
        ask()
    except hbmcomm.HbmcommError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(folder: Path) -> None:
    other = [int(sys.argv[2])]
    mine = {
        "cpu": rank_process.pin(WORLD.rank, "packed"),
        "status": facts.status(),
        "local": look(WORLD, "hbw", NBYTES),
        "all": look(WORLD, "hbw_all", NBYTES),
        "other": refusal(lambda: hbmcomm.empty(NBYTES, "u1", kind="hbw", nodes=other)),
        "other arena": refusal(lambda: hbmcomm.Communicator(WORLD, kind="hbw", nodes=other)),
    }
    ranks = WORLD.gather(mine)
    if ranks:
        report = {"topology": asdict(hbmcomm.topology()), "ranks": ranks}
        (folder / "found.json").write_text(json.dumps(report), encoding="utf-8")


rank_process.run(main, Path(sys.argv[1]))
