"""Ranks of one machine without MPI: the part of a communicator that the harness needs.

Collectives over arrays that all ranks can reach are written here once; how ranks reach them, and
how they wait for each other, is threads.py's and processes.py's business.
"""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.measure.operations import Array

CACHE_LINE = 8  # flags of 8 bytes
SEND, RECV = 0, 1


class Gate:
    """A barrier on flags with one writer each; it aligns the start of ranks and orders no data.

    Its ranks leave within microseconds of each other, as those of MPI's barriers do. Barriers of
    threading and multiprocessing wake one rank after the other, and the wait for the last one would
    count as the operation's.
    """

    def __init__(self, flags: list[int] | memoryview, rank: int, size: int) -> None:
        """Args: flags, CACHE_LINE for each rank, all 0; all ranks share them."""
        self._flags, self._rank, self._size, self._turn = flags, rank, size, 0

    def __call__(self) -> None:
        self._turn += 1
        flags, turn = self._flags, self._turn
        flags[self._rank * CACHE_LINE] = turn
        for other in range(self._size):
            while flags[other * CACHE_LINE] < turn:
                os.sched_yield()  # where ranks share a CPU
                time.sleep(0)  # gives the interpreter's lock away


class Group:
    """One rank's view of all ranks, with the names that mpi4py gives them."""

    def __init__(self, rank: int, size: int, gate: Callable[[], None]) -> None:
        self.rank, self.size, self.Barrier = rank, size, gate

    def allgather(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order, on each of them."""
        raise NotImplementedError

    def gather(self, value: Any) -> list[Any] | None:
        """The values of all ranks on rank 0; None elsewhere."""
        every = self.allgather(value)
        return every if self.rank == 0 else None

    def bcast(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        return self.allgather(value)[0]

    def allreduce(self, value: Any, op: Callable[[Any, Any], Any] = lambda a, b: a + b) -> Any:
        """The values of all ranks, combined in the order of ranks."""
        return functools.reduce(op, self.allgather(value))


class InPlace(Group):
    """Collectives over arrays in memory of all ranks: each byte is copied once, no rank idles.

    Subclasses know how a rank reaches the arrays of every other rank, and have a barrier.
    """

    _barrier: Any

    def show(self, send: Array, recv: Array | None) -> None:
        """Publish this rank's arrays; other ranks reach them after the next wait."""
        raise NotImplementedError

    def shown(self, rank: int, which: int, elements: int, dtype: np.dtype[Any]) -> Array:
        """The first elements of a rank's published buffer: SEND or RECV."""
        raise NotImplementedError

    def wait(self) -> None:
        """Until all ranks wait."""
        self._barrier.wait()

    def Bcast(self, buffer: Array, root: int) -> None:
        """Every rank copies the root's buffer."""
        self.show(buffer, None)
        self.wait()
        if self.rank != root:
            np.copyto(buffer, self.shown(root, SEND, buffer.size, buffer.dtype))
        self.wait()

    def Gather(self, send: Array, recv: Array | None, root: int) -> None:
        """Every rank writes its row of the root's buffer; shapes are free, elements count."""
        send = send.reshape(-1)
        self.show(send, None if recv is None else recv.reshape(-1))
        self.wait()
        every = self.shown(root, RECV, self.size * send.size, send.dtype)
        np.copyto(every[self.rank * send.size : (self.rank + 1) * send.size], send)
        self.wait()

    def Allreduce(self, send: Array, recv: Array, _op: object) -> None:
        """Every rank adds up its share of the elements and writes it into all buffers."""
        self.show(send, recv)
        self.wait()
        own = slice(*(send.size * (self.rank + end) // self.size for end in (0, 1)))
        total = recv[own]
        np.copyto(total, self.shown(0, SEND, send.size, send.dtype)[own])
        for other in range(1, self.size):
            np.add(total, self.shown(other, SEND, send.size, send.dtype)[own], out=total)
        for other in range(self.size):
            if other != self.rank:
                np.copyto(self.shown(other, RECV, recv.size, recv.dtype)[own], total)
        self.wait()
