"""Rank program: a bench whose MPI crashes or hangs in plain Bcast of 64 bytes, or does not start.

SABOTAGE says which: "crash", "hang" or "start"; empty: the MPI as it is.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.bench import contenders, parties, program
from experiments.bench.contenders import Contender, Ready
from experiments.measure import process

HOW = os.environ.get("SABOTAGE", "")


def plain(comm: Any) -> Contender:
    honest = contenders.plain(comm)
    if not HOW or isinstance(comm, hbmcomm.Communicator):
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
parties.plain = plain
process.run(program.main, Path(sys.argv[1]))
