"""Rank program: the harness with a contender that fails, as the variable SABOTAGE says.

"crash", "hang": the MPI in plain Bcast of 64 bytes. "plain", "pickled": these calls leave one
element wrong on each rank but 0. "start": the program does not start. "": nothing fails.
"""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.implementations import entrants
from experiments.implementations.contender import Contender
from experiments.measure.operations import Ready
from experiments.programs import harness, rank_process

HOW = os.environ.get("SABOTAGE", "")


def sabotaged(make: Any) -> Any:
    def remade(comm: Any) -> Contender:
        honest = make(comm)
        sabotage = failing if HOW in ("crash", "hang") else wrong
        return lambda *call: sabotage(comm, honest(*call), *call)

    return remade


def failing(comm: Any, ready: Any, operation: str, send: Any, recv: Any) -> Ready:
    fails = getattr(comm, "transport", "mpi") == "mpi" and operation == "bcast"
    return Ready(fail) if fails and send.nbytes == 64 else ready


def fail() -> None:
    if HOW == "crash" and os.environ.get("OMPI_COMM_WORLD_RANK") == "1":
        os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


def wrong(comm: Any, ready: Any, operation: str, send: Any, recv: Any) -> Ready:
    def collect() -> None:
        ready.collect()
        recv[-1] += 1

    return ready if operation == "copy" or comm.rank == 0 else replace(ready, collect=collect)


if HOW == "start":
    sys.exit(3)
if HOW:
    name = "pickled" if HOW == "pickled" else "plain"
    setattr(entrants, name, sabotaged(getattr(entrants, name)))
rank_process.run(harness.main, Path(sys.argv[1]))
