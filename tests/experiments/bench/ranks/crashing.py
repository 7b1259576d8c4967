"""Rank program: the harness; its MPI crashes or hangs in plain Bcast of 64 bytes, or never starts.

SABOTAGE says which: "crash", "hang" or "start"; empty: the MPI as it is.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from experiments.programs import harness
from experiments.programs.contenders import contender as contenders
from experiments.programs.contenders import entrants
from experiments.programs.contenders.contender import Contender
from experiments.programs.measure.ready import Ready

HOW = os.environ.get("SABOTAGE", "")


def plain(comm: Any) -> Contender:
    honest = contenders.plain(comm)
    if not HOW or getattr(comm, "transport", "mpi") != "mpi":
        return honest

    def contender(operation: str, send: Any, recv: Any) -> Ready | None:
        ready = honest(operation, send, recv)
        if ready is None or (operation, send.nbytes) != ("bcast", 64):
            return ready
        return Ready(fail)

    return contender


def fail() -> None:
    if HOW == "crash" and os.environ.get("OMPI_COMM_WORLD_RANK") == "1":
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


if HOW == "start":
    sys.exit(3)
entrants.plain = plain
harness.run(Path(sys.argv[1]))
