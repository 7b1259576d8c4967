"""Runs the harness on a node of an allocation: `python -m experiments.programs.on_a_node FOLDER`.

A batch system that loses a node can no longer end ranks there. So a child of each rank ends it once
its launch is gone: the driver removes the files of a launch that failed. The child is made before
MPI begins, where a rank may wait for lost ones as well.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from experiments.processes.executables import die_with_parent

LOOK = 1.0  # seconds between two looks for the file


def end_without(file: Path) -> None:
    """From here on, this process ends soon after a file is gone."""
    rank = os.getpid()
    if os.fork() == 0:
        _watch(rank, file)


def _watch(rank: int, file: Path) -> NoReturn:
    die_with_parent()
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))  # a launcher waits for the end of its pipes
    while os.getppid() == rank and _is_there(file):
        time.sleep(LOOK)
    if os.getppid() == rank:
        os.kill(rank, signal.SIGKILL)
    os._exit(0)


def _is_there(file: Path) -> bool:
    """Also while a file system of several nodes does not answer."""
    try:
        file.stat()
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True


def main(folder: Path) -> None:
    """One rank's whole life, with a child."""
    end_without(folder / "launch.json")
    from experiments.programs import harness, rank_process  # begins MPI

    rank_process.run(harness.main, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
