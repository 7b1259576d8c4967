"""How rank programs end: an error on one ends all, and one that hangs says where it is.

Importing this sets the former; the latter needs moving_on() called every now and then.
"""

import faulthandler
import sys
import traceback
from types import TracebackType

from mpi4py import MPI

faulthandler.enable()
STUCK = 100.0
"""Seconds without a word of moving on. A busy machine must not reach it: looking at a thread that
runs Python may end the process (faulthandler of Python 3.11)."""


def moving_on() -> None:
    """From here on something must happen again within STUCK seconds."""
    faulthandler.dump_traceback_later(STUCK)


def say(words: str) -> None:
    """One write: lines of two ranks do not mix."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _end_all(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    shown = "".join(traceback.format_exception(kind, error, trace))
    say(f"rank {MPI.COMM_WORLD.rank}: {shown}")
    MPI.COMM_WORLD.Abort(1)


sys.excepthook = _end_all
