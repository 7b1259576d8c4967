"""Rank program: rank 1 writes garbage in place of its failure and its records of calls.

Rank 0, which waits for it, gets an error of this library with a text, each of several times.
"""

import contextlib
import ctypes
import random
import struct

from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator, HbmcommError
from hbmcomm.transports.native import lib

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
BEFORE_POSTS = 4096  # bytes of a control block in which the record of a failure is
RECORDS = 400  # bytes from there: that record, and those of calls


def block(comm: Communicator) -> int:
    """The address of this rank's control block."""
    address: int = comm._arena.ranks[RANK].control  # type: ignore[attr-defined]
    return address


def place_of_failures() -> int:
    """Where a control block has it, by a failure that is known."""
    comm = Communicator(WORLD, transport="direct", kind="regular")
    with contextlib.suppress(CallMismatch):
        comm.Bcast(bytearray(8)) if RANK else comm.Barrier()
    record = struct.pack("I4xI", lib.HBM_MISMATCH, lib.HBM_MISMATCH)
    return ctypes.string_at(block(comm), BEFORE_POSTS).index(record)


place = place_of_failures()
for seed in range(12):
    comm = Communicator(WORLD, transport="direct", kind="regular")
    if RANK == 1:
        garbage = b"\xff" * RECORDS if seed == 0 else random.Random(seed).randbytes(RECORDS)
        ctypes.memmove(block(comm) + place, garbage, RECORDS)
    else:
        try:
            comm.Barrier()
        except HbmcommError as error:
            print(f"{type(error).__name__}: {error}", flush=True)
    WORLD.Barrier()
