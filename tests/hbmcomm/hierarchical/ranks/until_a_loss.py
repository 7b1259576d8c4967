"""Rank program on hosts: random calls until a peer is lost; each rank writes what it saw and when.

Usage: until_a_loss.py FOLDER SEED. Each rank makes the file `going-RANK` there once calls
work, and bears the name rankRANK among the processes of this machine. Where a rank crashes, its
Python stack is in `crash-RANK`; the core sends by a function of Python, so that the stack shows a
crash in a send.
"""

import ctypes
import faulthandler
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

sys.path.insert(0, str(Path(__file__).parents[2] / "transports/ranks"))

from drawn.attempt import Attempt
from drawn.calls import draw

from hbmcomm import Communicator, PeerError

FOLDER, SEED = Path(sys.argv[1]), int(sys.argv[2])
PREPARED = 12  # calls, drawn from again and again
GIVE_UP = 60.0  # seconds after which a rank that has seen nothing reports that
WORD, INT = ctypes.c_uint64, ctypes.c_int

_isend = ctypes.CDLL(MPI.__file__).MPI_Isend
_isend.argtypes = (WORD, INT, WORD, INT, INT, WORD, WORD)


@ctypes.CFUNCTYPE(INT, *_isend.argtypes)
def send(*arguments: int) -> int:
    """MPI_Isend, as the core calls it: handles are integers or pointers."""
    return int(_isend(*arguments))


class Library(ctypes.CDLL):
    """A library in which MPI_Isend is `send`."""

    def __getattr__(self, name: str) -> Any:
        return send if name == "MPI_Isend" else super().__getattr__(name)


signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # by which MPICH's launcher announces a death
with mock.patch.object(ctypes, "CDLL", Library):
    comm = Communicator(MPI.COMM_WORLD)
crash = (FOLDER / f"crash-{comm.rank}").open("w")
faulthandler.enable(crash)
Path("/proc/self/comm").write_text(f"rank{comm.rank}")
rng = np.random.default_rng(SEED)
large = float(rng.choice([0, 0.1, 0.3]))
attempts = [Attempt(draw(rng, comm.size, "hierarchical", large), comm) for _ in range(PREPARED)]
comm.Barrier()
assert comm.transport == "hierarchical"
(FOLDER / f"going-{comm.rank}").touch()
began = time.monotonic()
words = "nothing seen"
try:
    while time.monotonic() - began < GIVE_UP:
        attempts[int(rng.integers(PREPARED))].run()
except PeerError as error:
    words = f"PeerError: {error}"
except Exception as error:
    words = f"{type(error).__name__}: {error}"
(FOLDER / f"seen-{comm.rank}").write_text(f"{time.time()} {words}", "utf-8")
os._exit(0)
