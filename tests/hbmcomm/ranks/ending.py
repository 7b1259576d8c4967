"""How rank programs end: an error on one ends all, and one that hangs says where it is.

Importing this sets the former; the latter needs moving_on() called every now and then.
"""

import faulthandler
import sys
import traceback
from types import TracebackType

from mpi4py import MPI

faulthandler.enable()
STUCK = 40.0  # seconds without a word of moving on


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
