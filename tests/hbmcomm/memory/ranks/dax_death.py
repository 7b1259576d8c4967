"""Rank program: the last rank is killed; the others learn of it, and still have the device.

Usage: dax_death.py DEVICE FOLDER. The empty folder gets what each survivor saw, best "PeerError";
it then leaves without MPI's own end, which would wait for the lost rank.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from mpi4py import MPI
from stand_in import use

import hbmcomm
from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
GIVE_UP = 20.0  # seconds after which a survivor that has seen nothing reports that


def report(folder: Path, words: str) -> NoReturn:
    """In a file, since a launcher that has lost a rank may lose output; leave with the others."""
    (folder / f"rank{WORLD.rank}").write_text(words, encoding="utf-8")
    until = time.monotonic() + GIVE_UP
    while len(list(folder.glob("rank*"))) < WORLD.size - 1 and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(0)


def main(path: str, folder: Path) -> None:
    use(path)
    comm = Communicator(WORLD, device=path)
    array = comm.zeros(1000)
    comm.Allreduce(MPI.IN_PLACE, array)
    if WORLD.rank == WORLD.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + GIVE_UP
    try:
        while time.monotonic() < until:
            comm.Barrier()
    except hbmcomm.PeerError as error:
        command = [sys.executable, Path(__file__).with_name("other_job.py"), path]
        output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        kept = "is in use by process" in output
        report(folder, f"{'PeerError' if kept else output}: {error}")
    report(folder, "nothing seen")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
