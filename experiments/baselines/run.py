"""Runs a baseline over one launch: `python -m experiments.baselines.run FOLDER`.

FOLDER holds launch.json; progress, result.json and samples.npz are written beside it, as the
harness does. No MPI is initialised: mpi4py is imported for its names.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import mpi4py

mpi4py.rc(initialize=False, finalize=False)

from experiments.baselines import processes, rank, threads  # noqa: E402
from experiments.baselines.launches import PROCESSES, THREADS, measures  # noqa: E402
from experiments.baselines.rank import Team  # noqa: E402
from experiments.processes.executables import die_with_parent  # noqa: E402
from experiments.programs.launch_folder import read_launch  # noqa: E402

START = {THREADS: threads.start, PROCESSES: processes.start}


def main(folder: Path) -> None:
    """Measure, and write what the harness would have written."""
    die_with_parent()
    launch = read_launch(folder)
    measured = tuple(cell for cell in launch.cells if measures(launch.program, cell))
    began = time.time()

    def work(team: Team) -> None:
        rank.measure(team, launch, folder, began)

    START[launch.program](replace(launch, cells=measured), work)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m experiments.baselines.run FOLDER")
    main(Path(sys.argv[1]))
