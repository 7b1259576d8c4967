"""How often an MPI copies a message between two ranks: seen by which rank reads the memory.

The first process that touches a page takes a page fault. Where the sender takes the faults, it
copied its message into some buffer, from where the receiver copied it again.
Where the receiver takes them, it copied straight out of the sender's memory: single copy.
"""

import contextlib
import mmap
import resource

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

SIZES = {"64 KiB": 2**16, "1 MiB": 2**20, "16 MiB": 2**24}
"""Sizes of the messages in bytes; below the first no MPI leaves its buffers."""
LEAST_PAGES = 16  # of a message: some faults belong to the MPI itself
ALONE = "not tried: one rank"


def copies(comm: MPI.Intracomm) -> str:
    """Number of copies of messages from rank 0 to rank 1; a collective.

    Returns:
        "one", "two" (or more: a network copies too), or where they differ, each size with its own:
        "64 KiB: two; 1 MiB: one; 16 MiB: one".
    """
    if comm.size == 1:
        return ALONE
    sizes = {name: size for name, size in SIZES.items() if size >= LEAST_PAGES * mmap.PAGESIZE}
    by_size: dict[str, str] = comm.bcast(
        {name: _copies(comm, size) for name, size in sizes.items()}
    )
    kinds = set(by_size.values())
    return kinds.pop() if len(kinds) == 1 else "; ".join(f"{n}: {k}" for n, k in by_size.items())


def _copies(comm: MPI.Intracomm, size: int) -> str:
    """How often a message of this size was copied; valid on rank 0."""
    faults = 0
    if comm.rank == 0:
        message = _untouched(size)
        comm.Send(np.ones(size, np.uint8), 1)  # the MPI touches its own buffers
        before = _faults()
        comm.Send(message, 1)
        faults = _faults() - before
    elif comm.rank == 1:
        room = np.ones(size, np.uint8)
        comm.Recv(room, 0)
        comm.Recv(room, 0)
    return "two" if 2 * faults > size // mmap.PAGESIZE else "one"


def _untouched(size: int) -> NDArray[np.uint8]:
    """Memory with untouched pages."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel without huge pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)  # else one fault may cover 512 pages
    return np.frombuffer(pages, np.uint8)


def _faults() -> int:
    """Minor page faults of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
