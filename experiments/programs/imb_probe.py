"""What the ranks of an external program run on.

`mpiexec ... python -m experiments.programs.imb_probe FOLDER`

The ranks are started and pinned as the harness's are; rank 0 writes FOLDER/probe.json: the
environment of a result, and the CPU of each rank.
"""

import json
import sys
from pathlib import Path

from mpi4py import MPI

from experiments.machine import datapath
from experiments.processes.executables import die_with_parent
from experiments.programs import rank_process
from experiments.programs.harness import surroundings
from experiments.programs.launch_folder import read_launch


def main(folder: Path) -> None:
    """One rank's whole life."""
    die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = read_launch(folder)
    paths = datapath.probe(comm)
    cpu = rank_process.pin(comm.rank, launch.binding)
    ranks = comm.gather({"rank": comm.rank, "cpu": cpu, "pools": []})
    environment = surroundings(comm, paths)
    if comm.rank == 0:
        probed = {"environment": environment, "ranks": ranks}
        (folder / "probe.json").write_text(json.dumps(probed), encoding="utf-8")


if __name__ == "__main__":
    rank_process.run(main, Path(sys.argv[1]))
