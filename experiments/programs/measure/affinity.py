"""The CPUs that threads of ranks may run on, beside those that the ranks are pinned to."""

import contextlib
import os
from collections.abc import Iterable, Iterator

from mpi4py import MPI


def of_all_ranks(comm: MPI.Intracomm) -> set[int]:
    """The CPUs that any rank may run on now; a collective."""
    return set().union(*comm.allgather(os.sched_getaffinity(0)))


@contextlib.contextmanager
def unpinned(cpus: Iterable[int]) -> Iterator[None]:
    """Threads that are made within the block may run on these CPUs.

    On the one CPU of their rank they would wait for it whenever it waits for others.
    """
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, pinned)
