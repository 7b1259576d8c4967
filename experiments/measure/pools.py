"""The buffers of a launch, those of one kind and locality at a time.

Each kind can so have all of its memory, and none of it goes to whichever kind came first.
"""

import contextlib
import gc
import os
from collections.abc import Iterable, Iterator
from typing import Any

from mpi4py import MPI

from experiments.machine import facts
from experiments.measure.buffers import (
    Memory,
    Pool,
    Unavailable,
    agree,
    make_pool,
    misplacement,
    placement_of,
    recorded,
    require_memory,
)
from experiments.model.contender_names import DIRECT, MPI_ITSELF, TORCH_GROUPS
from experiments.model.errors import Misplaced
from experiments.model.launch import TRANSPORTS, Launch
from experiments.model.workloads import CONTENDERS
from experiments.schedule import footprint


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


class Pools:
    """Every method is a collective over the launch's ranks.

    Attributes:
        described: what a result holds of each kind and locality that was had and is given back.
    """

    def __init__(self, comm: MPI.Intracomm, launch: Launch, cpu: int) -> None:
        """Refuse a launch that the machine has no room for; allocates nothing.

        Only TRANSPORTS bring memory. Others use direct's (groups of torch use its arena in
        place), or the MPI's where ranks share none. This rank is pinned to `cpu`.
        """
        cache = facts.last_level_cache()
        require_memory(comm, footprint.own_bytes(launch, comm.rank, cache), launch.name)
        asked = {cell.transport for cell in launch.cells}
        if not asked.isdisjoint((*TORCH_GROUPS, *CONTENDERS)):
            asked |= {DIRECT, MPI_ITSELF}
        self._transports = [name for name in TRANSPORTS if name in asked]
        self._comm, self._dtype, self._cpu = comm, launch.dtype, cpu
        self._lengths = footprint.lengths(launch, comm.rank, cache)
        self._open: tuple[Memory, Pool] | None = None
        self._lacking: dict[Memory, str] = {}
        self.described: list[dict[str, Any]] = []

    def of(self, key: Memory) -> Pool:
        """The buffers of cells that share them; any others are given back first.

        Raises:
            Unavailable: on every rank, now and at each later call.
            Misplaced: as make_pool() and close().
        """
        if self._open and self._open[0] == key:
            return self._open[1]
        self.close()
        if key in self._lacking:
            raise Unavailable(self._lacking[key])
        try:
            asked = (self._transports, self._dtype, self._lengths, self._cpu)
            pool = make_pool(self._comm, key, *asked)
        except Unavailable as reason:
            self._lacking[key] = str(reason)
            raise
        self._open = key, pool
        return pool

    def close(self) -> None:
        """Ask once more where the pages are, and give them back; nothing where none is open.

        Raises:
            Misplaced: on every rank, when pages of a strict kind moved while they were measured.
        """
        if self._open is None:
            return
        (_, locality, buffers), pool = self._open
        self._open = None
        after = placement_of(pool.send, pool.recv)
        moved = misplacement(pool.kind, pool.nodes, after, pool.nbytes) if pool.strict else ""
        agree(self._comm, moved and f"after timing, {moved}", Misplaced)
        self.described.append(recorded(pool, locality, after) | {"buffers": buffers})
        for communicator in pool.communicators.values():
            communicator.Free()
        del pool
        gc.collect()
        self._comm.Barrier()  # memory that others map too goes with the last of them
