"""A signal's handler raises while garbage collection closes a communicator of several hosts.

What was not closed then is closed at the end of the program, with all that it needs still there.
"""

import gc
import sys
import weakref
from types import FrameType

import numpy as np

import hbmcomm

interrupted = []


def interrupt(frame: FrameType, event: str, _: object) -> None:
    """Raise as the communicator's state of all hosts begins to close."""
    if event != "call" or frame.f_code is not weakref.finalize.__call__.__code__:
        return
    waiting = weakref.finalize._registry.get(frame.f_locals["self"])  # type: ignore[attr-defined]
    if waiting and waiting.func.__module__ == "hbmcomm.hierarchical.transport":
        sys.setprofile(None)
        interrupted.append(True)
        raise InterruptedError("a signal")


comm = hbmcomm.Communicator(transport="hierarchical")
x, y = np.ones(10), np.empty(10)
comm.Allreduce(x, y)
assert y[0] == comm.size
sys.setprofile(interrupt)
del comm
gc.collect()
sys.setprofile(None)
print(f"interrupted {len(interrupted)}")
