"""Rank program: what datapath.probe() finds where each rank has namespaces of its own.

python apart.py OUT SWITCH...: rank 0 writes all ranks' answers to OUT as JSON; SWITCHes are those
of unshare(1), and --own-shm mounts a /dev/shm of its own.
"""

import json
import os
import sys
from pathlib import Path

OWN_SHM = "--own-shm"


def main(out: Path, switches: list[str]) -> None:
    if switches:
        again = [sys.executable, __file__, str(out)]
        if OWN_SHM in switches:
            switches.remove(OWN_SHM)
            mount = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
            again = ["sh", "-c", mount, "sh", *again]
        os.execvp("unshare", ["unshare", *switches, *again])
    from mpi4py import MPI

    from experiments.machine import datapath

    every = MPI.COMM_WORLD.gather(datapath.probe(MPI.COMM_WORLD))
    if MPI.COMM_WORLD.rank == 0:
        out.write_text(json.dumps(every))


main(Path(sys.argv[1]), sys.argv[2:])
