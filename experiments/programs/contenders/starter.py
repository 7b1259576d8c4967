"""The barrier that starts the ranks of a launch at the same moment; no contender uses it.

It is one of direct's under every MPI alike: MPICH's own lets two ranks go 1 µs apart, Open MPI's
0.1, and the slowest rank's time would hold that, whatever is timed. The barrier is that of a copy
of the library that serves nothing else: after its own, with its code in the caches, direct took 3 %
less for 8 bytes than a second build of the same code.
"""

import shutil
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.model.contender_names import DIRECT
from experiments.programs.contenders.second_copy import load


def make_starter(comm: MPI.Intracomm, folder: Path) -> Any:
    """A communicator of a copy of the library in the launch's folder; a collective."""
    package = Path(hbmcomm.__file__).parent
    copy = folder / "starter" / package.name
    if comm.rank == 0:
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    comm.Barrier()
    return load(copy, "hbmcomm_starter").Communicator(comm, kind="regular", transport=DIRECT)
