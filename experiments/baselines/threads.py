"""Ranks that are threads of one process, as a Python user writes them: threading and NumPy."""

import threading
from typing import Any

import numpy as np

from experiments.baselines.group import CACHE_LINE, Gate, InPlace
from experiments.baselines.rank import Team, Work, ended_by_any_error
from experiments.machine import facts
from experiments.measure.operations import Array
from experiments.model.launch import Launch
from experiments.schedule import footprint


class Threads(InPlace):
    """Collectives of threads, which share an address space; objects are passed by reference."""

    def __init__(
        self, rank: int, table: list[Any], barrier: threading.Barrier, flags: list[int]
    ) -> None:
        """Args: table, of what each rank publishes; barrier, of all ranks."""
        super().__init__(rank, len(table), Gate(flags, rank, len(table)))
        self._table, self._barrier = table, barrier

    def allgather(self, value: Any) -> list[Any]:
        self._table[self.rank] = value
        self.wait()
        every = list(self._table)
        self.wait()
        return every

    def show(self, send: Array, recv: Array | None) -> None:
        self._table[self.rank] = (send, recv)

    def shown(self, rank: int, which: int, elements: int, dtype: np.dtype[Any]) -> Array:
        array: Array = self._table[rank][which]
        return array


def start(launch: Launch, work: Work) -> None:
    """Run one thread for each rank, until all have ended."""
    table: list[Any] = [None] * launch.ranks
    barrier, flags = threading.Barrier(launch.ranks), [0] * (CACHE_LINE * launch.ranks)
    cache = facts.last_level_cache()

    def one(rank: int) -> None:
        send, recv = (
            np.empty(length, launch.dtype) for length in footprint.lengths(launch, rank, cache)
        )
        comm = Threads(rank, table, barrier, flags)
        ended_by_any_error(rank, lambda: work(Team(comm, {"mpi": comm}, send, recv)))

    ranks = [threading.Thread(target=one, args=(rank,)) for rank in range(launch.ranks)]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
