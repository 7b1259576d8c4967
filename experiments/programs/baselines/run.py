"""Runs a baseline over one launch: `python -m experiments.programs.baselines.run FOLDER`.

FOLDER holds launch.json; progress, result.json and samples.npz are written beside it, as the
harness does. No MPI is initialised: mpi4py is imported for its names.
"""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import mpi4py

mpi4py.rc(initialize=False, finalize=False)

import numpy as np  # noqa: E402

from experiments.model.launch import FORMAT, Launch  # noqa: E402
from experiments.programs import rank_process  # noqa: E402
from experiments.programs.baselines import processes, rank, threads  # noqa: E402
from experiments.programs.baselines.launches import (  # noqa: E402
    DIFFERENCES,
    PROCESSES,
    THREADS,
    measures,
)
from experiments.programs.baselines.rank import Team  # noqa: E402
from experiments.programs.machine import cgroup, facts, nodes, versions  # noqa: E402

START = {THREADS: threads.start, PROCESSES: processes.start}


def main(folder: Path) -> None:
    """Measure, and write what the harness would have written."""
    rank_process.die_with_parent()
    launch = Launch.from_dict(json.loads((folder / "launch.json").read_text(encoding="utf-8")))
    measured = tuple(cell for cell in launch.cells if measures(launch.program, cell))
    began = time.time()

    def work(team: Team) -> None:
        found = rank.measure(team, launch, folder)
        if found:
            _write(folder, launch, found, began)

    START[launch.program](replace(launch, cells=measured), work)


def _write(folder: Path, launch: Launch, found: rank.Found, began: float) -> None:
    result = {
        "format": FORMAT,
        "launch": launch.to_dict(),
        "environment": {
            "versions": versions.versions(),
            "hashes": versions.hashes(),
            "machine": facts.machine() | cgroup.limits(),
            "topology": nodes.nodes(),
            "measurement": {"barrier": rank.BARRIER},
        },
        "ranks": found.ranks,
        "cells": found.cells,
        "external": {
            "version": f"Python {versions.versions()['python']}",
            "differences": [DIFFERENCES[launch.program]],
        },
        "began": began,
        "seconds": time.time() - began,
    }
    np.savez(folder / "samples.npz", **found.samples)
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m experiments.programs.baselines.run FOLDER")
    main(Path(sys.argv[1]))
