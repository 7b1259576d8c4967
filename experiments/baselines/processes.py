"""Ranks that are processes of multiprocessing, as a Python user writes them.

Two ways of data: arrays in multiprocessing.shared_memory behind a multiprocessing.Barrier, and
arrays that are pickled through multiprocessing's queues. Leaves nothing in /dev/shm: the segments
lose their names before a rank starts.
"""

import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from experiments.baselines.group import CACHE_LINE, RECV, SEND, Gate, Group, InPlace
from experiments.baselines.rank import Team, Work, ended_by_any_error
from experiments.machine import facts
from experiments.measure.operations import Array
from experiments.model.launch import Launch
from experiments.processes.executables import die_with_parent
from experiments.schedule import footprint
from experiments.schedule.footprint import MEMORY_SHARE

SHM = "/dev/shm"
PAGE = 4096


class Queues(Group):
    """Collectives that send pickled arrays, all of them by way of the root."""

    def __init__(self, rank: int, size: int, gate: Gate, up: Sequence[Any], down: Sequence[Any]):
        """Args: up, down: queues to rank 0 and from it, one for each rank.

        They are SimpleQueues: a Queue pickles in a thread of its own, when the array may hold the
        next iteration's values already.
        """
        super().__init__(rank, size, gate)
        self._up, self._down = up, down

    def allgather(self, value: Any) -> list[Any]:
        if self.rank:
            self._up[self.rank].put(value)
            every: list[Any] = self._down[self.rank].get()
            return every
        every = [value, *(self._up[rank].get() for rank in range(1, self.size))]
        self._to_all(every)
        return every

    def Bcast(self, buffer: Array, root: int) -> None:
        """The root, rank 0, sends its buffer to each rank."""
        if self.rank == root:
            self._to_all(buffer)
        else:
            np.copyto(buffer, self._down[self.rank].get())

    def Gather(self, send: Array, recv: Array | None, root: int) -> None:
        """Each rank sends its buffer to the root, rank 0; shapes are free, elements count."""
        send = send.reshape(-1)
        if recv is None:
            self._up[self.rank].put(send)
            return
        rows = recv.reshape(self.size, -1)
        np.copyto(rows[root], send)
        for rank in range(1, self.size):
            np.copyto(rows[rank], self._up[rank].get())

    def Allreduce(self, send: Array, recv: Array, _op: object) -> None:
        """Rank 0 adds up what the others send, and sends them the sum."""
        if self.rank:
            self._up[self.rank].put(send)
            np.copyto(recv, self._down[self.rank].get())
            return
        np.copyto(recv, send)
        for rank in range(1, self.size):
            np.add(recv, self._up[rank].get(), out=recv)
        self._to_all(recv)

    def _to_all(self, value: Any) -> None:
        for rank in range(1, self.size):
            self._down[rank].put(value)


class SharedArrays(InPlace):
    """Collectives over arrays in shared memory; objects go through queues."""

    def __init__(
        self, objects: Queues, segments: Sequence[Array], places: Array, barrier: Any
    ) -> None:
        """Args: segments, of each rank's memory as bytes; places: (ranks, 2) offsets, shared."""
        super().__init__(objects.rank, objects.size, objects.Barrier)
        self.allgather = objects.allgather  # type: ignore[method-assign]
        self._segments, self._places, self._barrier = segments, places, barrier
        self._start = segments[self.rank].ctypes.data

    def show(self, send: Array, recv: Array | None) -> None:
        self._places[self.rank, SEND] = send.ctypes.data - self._start
        if recv is not None:
            self._places[self.rank, RECV] = recv.ctypes.data - self._start

    def shown(self, rank: int, which: int, elements: int, dtype: np.dtype[Any]) -> Array:
        first = int(self._places[rank, which])
        return self._segments[rank][first : first + elements * dtype.itemsize].view(dtype)


def start(launch: Launch, work: Work) -> None:
    """Run one process for each rank; the others end when one of them fails.

    Raises:
        SystemExit: one failed, which has printed why.
    """
    context = multiprocessing.get_context("fork")
    ranks, cache = launch.ranks, facts.last_level_cache()
    lengths = [footprint.lengths(launch, rank, cache) for rank in range(ranks)]
    itemsize = np.dtype(launch.dtype).itemsize
    starts = [-(-send * itemsize // PAGE) * PAGE for send, _ in lengths]
    sizes = [begin + recv * itemsize for begin, (_, recv) in zip(starts, lengths, strict=True)]
    lacking = _no_room(sum(sizes))
    # A page of the mapping exists once a rank has touched it.
    segments = [_shared(size if not lacking else PAGE) for size in sizes]
    flags = _shared(8 * CACHE_LINE * ranks).view(np.int64)
    places, barrier = _shared(16 * ranks).view(np.int64).reshape(ranks, 2), context.Barrier(ranks)
    up, down = ([context.SimpleQueue() for _ in range(ranks)] for _ in range(2))

    def one(rank: int) -> None:
        die_with_parent()
        comm = Queues(rank, ranks, Gate(flags.data, rank, ranks), up, down)
        shared = SharedArrays(comm, segments, places, barrier)
        first, (given, taken) = starts[rank], lengths[rank]
        if lacking:
            send, recv = (np.empty(length, launch.dtype) for length in (given, taken))
        else:
            send = segments[rank][: given * itemsize].view(launch.dtype)
            recv = segments[rank][first : first + taken * itemsize].view(launch.dtype)
        ways = {"mpi": shared, "pickle": comm}
        ended_by_any_error(rank, lambda: work(Team(comm, ways, send, recv, lacking)))

    _await([context.Process(target=one, args=(rank,)) for rank in range(ranks)])


def _await(ranks: Sequence[Any]) -> None:
    for process in ranks:
        process.start()
    waiting = {process.sentinel: process for process in ranks}
    while waiting:
        for sentinel in wait(list(waiting)):
            ended = waiting.pop(sentinel)
            ended.join()
            if ended.exitcode:
                for process in waiting.values():
                    process.kill()
                raise SystemExit(1)


_KEPT: list[SharedMemory] = []
"""Closing a segment would take the arrays over it away."""


def _shared(size: int) -> Array:
    """Anonymous zeroed memory, shared by processes that are forked later."""
    segment = SharedMemory(create=True, size=max(size, 1))
    segment.unlink()
    _KEPT.append(segment)
    return np.ndarray(max(size, 1), np.uint8, buffer=segment.buf)


def _no_room(size: int) -> dict[str, str]:
    """Why arrays of this size cannot be shared; a page past the end of /dev/shm kills a rank."""
    stats = os.statvfs(SHM)
    free = stats.f_bavail * stats.f_frsize
    if size <= MEMORY_SHARE * free:
        return {}
    return {
        "mpi": f"multiprocessing.shared_memory needs {size / 2**20:.0f} MiB of {SHM}, where "
        f"{free / 2**20:.0f} MiB are free: enlarge it (mount -o remount,size=...) or ask for "
        "smaller --sizes"
    }
