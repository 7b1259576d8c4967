"""What the ranks of an external program run on: `mpiexec ... experiments.external.probe FOLDER`.

The ranks are started and pinned as the harness's are; rank 0 writes FOLDER/probe.json: the
environment of a result, and the CPU of each rank.
"""

import json
import sys
from pathlib import Path

from mpi4py import MPI

from experiments.harness import surroundings
from experiments.measure import datapath, process
from experiments.schedule import Launch


def main(folder: Path) -> None:
    """One rank's whole life."""
    process.die_with_parent()
    comm = MPI.COMM_WORLD.Dup()
    launch = Launch.from_dict(json.loads((folder / "launch.json").read_text(encoding="utf-8")))
    paths = datapath.probe(comm)
    cpu = process.pin(comm.rank, launch.binding)
    ranks = comm.gather({"rank": comm.rank, "cpu": cpu, "pools": []})
    environment = surroundings(comm, paths)
    if comm.rank == 0:
        found = {"environment": environment, "ranks": ranks}
        (folder / "probe.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    process.run(main, Path(sys.argv[1]))
