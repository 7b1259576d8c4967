"""Ranks that are threads of one process, as a Python user writes them: threading and NumPy."""

import threading
from typing import Any

import numpy as np

from experiments.model.launch import Launch
from experiments.programs.baselines.group import CACHE_LINE, Gate, InPlace
from experiments.programs.baselines.rank import Team, Work, ended_by_any_error
from experiments.programs.machine import facts
from experiments.programs.measure.operations import Array
from experiments.schedule import footprint


class _Table:
    """The arrays that threads publish, and a barrier: shared objects."""

    def __init__(self, ranks: int) -> None:
        self.shown: list[Any] = [None] * ranks
        self.barrier = threading.Barrier(ranks)


class Threads(InPlace):
    """Collectives of threads, which share an address space; objects are passed by reference."""

    def __init__(self, rank: int, size: int, table: _Table, flags: list[int]) -> None:
        super().__init__(rank, size, Gate(flags, rank, size))
        self._table = table

    def allgather(self, value: Any) -> list[Any]:
        self._table.shown[self.rank] = value
        self.wait()
        every = list(self._table.shown)
        self.wait()
        return every

    def show(self, send: Array, recv: Array | None) -> None:
        self._table.shown[self.rank] = (send, recv)

    def shown_send(self, rank: int, like: Array) -> Array:
        found: Array = self._table.shown[rank][0]
        return found

    def shown_recv(self, rank: int, elements: int, like: Array) -> Array:
        found: Array = self._table.shown[rank][1]
        return found

    def wait(self) -> None:
        self._table.barrier.wait()


def start(launch: Launch, work: Work) -> None:
    """Run one thread for each rank, until all have ended."""
    table, flags = _Table(launch.ranks), [0] * (CACHE_LINE * launch.ranks)
    cache = facts.last_level_cache()

    def one(rank: int) -> None:
        send, recv = (
            np.empty(length, launch.dtype) for length in footprint.lengths(launch, rank, cache)
        )
        comm = Threads(rank, launch.ranks, table, flags)
        ended_by_any_error(rank, lambda: work(Team(comm, {"mpi": comm}, send, recv)))

    ranks = [threading.Thread(target=one, args=(rank,)) for rank in range(launch.ranks)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
