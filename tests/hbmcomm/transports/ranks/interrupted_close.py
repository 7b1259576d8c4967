"""A signal's handler raises at the first step of a communicator's end, as garbage is collected.

Calls of other communicators, and of MPI, advance the states of all that have not left.
"""

import gc
import sys
import weakref
from types import FrameType

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm.transports import native

interrupted = []


def interrupt(frame: FrameType, event: str, _: object) -> None:
    """Raise where a signal may: at the first instruction of what closes the state."""
    if event == "call" and frame.f_code is native._close.__code__:
        sys.setprofile(None)
        interrupted.append(True)
        raise InterruptedError("a signal")


other = hbmcomm.Communicator()
comm = hbmcomm.Communicator()
x, y = np.ones(100_000), np.empty(100_000)


def in_flight(comm: hbmcomm.Communicator) -> None:
    """An operation that rank 1 starts before rank 0 does, while both are in a call of MPI."""
    request = comm.Iallreduce(x, y) if comm.rank else None
    MPI.COMM_WORLD.Barrier()
    (request or comm.Iallreduce(x, y)).Wait()
    assert y[-1] == comm.size


in_flight(comm)
states = [weakref.ref(core.handle) for core in list(native._open.values())]
sys.setprofile(interrupt)
del comm
gc.collect()
sys.setprofile(None)
gone = [state for state in states if state() is None]
assert not gone, "the list of states that are advanced has one that was given back"
arrays = [other.full(50_000, 7.0) for _ in range(20)]  # what was given back would be these now
for _ in range(20):
    in_flight(other)
assert all((array == 7.0).all() for array in arrays)
print(f"interrupted {len(interrupted)}")
