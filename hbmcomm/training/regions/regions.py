"""Allocates regions on their consumers and opens them on their producers.

Two ranks that share memory get the same memory; others get MPI's one-sided calls. Which of the two
is found by trying, as transports find it. Only the place of an allocation goes by message, once.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, PeerError, SharedArray, Watch
from hbmcomm.training.regions.ends import Bytes, End, SharedEnd, WindowEnd
from hbmcomm.training.regions.extent import Extent, arrange
from hbmcomm.training.regions.region import Region, RemoteRegion
from hbmcomm.training.together import ClosedByAll, Patience, keep_for_ever, leave

_OFFER, _REPLY, _REPLIES = 0, 1, 1000  # tags
_GRACE = 0.5  # seconds in which what a rank did before it left may still be seen


class _Offer(NamedTuple):
    """One allocation, as its producer needs to know it."""

    capacities: dict[str, int]
    place: SharedArray | int
    """Where it is: the name of a shared array, or an address for MPI."""
    number: int


class Messages:
    """Messages on a communicator of their own.

    Args:
        comm: Only this object sends on it.
        look: Raises PeerError where a rank is gone; called with the seconds of the wait.
    """

    def __init__(self, comm: MPI.Intracomm, look: Callable[[float], None]) -> None:
        self._comm, self._look = comm, look

    def send(self, value: Any, target: int, tag: int) -> None:
        """Send a value that can be pickled."""
        self._until(self._comm.isend(value, target, tag).Test)

    def receive(self, source: int, tag: int) -> Any:
        """The next value from a rank."""
        self._until(lambda: self._comm.iprobe(source, tag))
        return self._comm.recv(None, source, tag)

    def meet(self) -> None:
        """Wait until all ranks are here; collective."""
        self._until(self._comm.Ibarrier().Test)

    def _until(self, is_done: Callable[[], bool]) -> None:
        patience = Patience(self._look)
        while not is_done():
            try:
                patience.wait()
            except PeerError:  # what a rank did before it left may only be seen now
                end = time.monotonic() + _GRACE
                while not is_done():
                    if time.monotonic() > end:
                        raise
                return


class Regions(ClosedByAll):
    """The remote regions of the ranks of a communicator.

    The constructor and `close` are collective; so is the end of a `with` block without an error.
    A rank that dies or leaves ends all of them.

    Args:
        comm: Its transport decides which ranks share memory, its kind is that of the regions. A
            duplicate is used, so `comm` is free for other calls, also while they are in flight.

    Attributes:
        messages: Small messages between the ranks, for what is set up once.

    Raises:
        HbmcommError: On ranks without common memory: this MPI has no unified memory model.
        OutOfMemory: On every rank: one of them has no memory for its part of the arena.
        TypeError: `comm` is not an hbmcomm.Communicator.
    """

    def __init__(self, comm: Communicator) -> None:
        if not isinstance(comm, Communicator):
            raise TypeError(
                f"Regions needs an hbmcomm.Communicator; found {type(comm).__name__}; wrap it: "
                "hbmcomm.Communicator(comm)"
            )
        self._comm = comm.Dup()
        duplicate = MPI.Intracomm(self._comm)
        self._watch = Watch(self._comm)
        self.messages = Messages(duplicate, self._watch.check)
        near = len(self._comm.arena_ranks) == comm.size
        everyone_is_near = duplicate.allreduce(near, MPI.LAND)
        self._window = None if everyone_is_near else _opened_window(duplicate)
        self._allocated = 0
        self._memories: list[Bytes] = []
        self._keep = weakref.finalize(self, _strand, self._memories, self._watch)

    def allocate(self, source: int, capacities: Mapping[str, int]) -> dict[str, Region]:
        """Regions in this rank's memory, by name, in which another rank produces; not collective.

        The other rank calls `open` as many times as this one allocates for it.

        Args:
            source: The producer.
            capacities: The most bytes of a tensor in each region.

        Raises:
            OutOfMemory: This rank has less memory.
            PeerError: The producer died.
            ValueError: No such rank, or a capacity below 1.
        """
        self._check_peer(source)
        for name, capacity in capacities.items():
            if capacity < 1:
                raise ValueError(f"region {name!r} of {capacity} bytes: give it at least 1")
        extents, nbytes = arrange(capacities)
        memory = self._cleared(extents, nbytes)
        number = self._allocated
        self._allocated += 1
        end: End
        place: SharedArray | int
        if self._shares_memory(source):
            place = self._comm.share(memory)
            end = SharedEnd(self._comm, source, memory)
        else:
            place = self._attach(memory)
            reply = cache(partial(self.messages.receive, source, _REPLY + number % _REPLIES))
            gone = partial(self._watch.check_target, source)
            end = WindowEnd(self._far, source, memory, reply, self._watch.check, gone)
        self.messages.send(_Offer(dict(capacities), place, number), source, _OFFER)
        return {name: Region(end, extent) for name, extent in extents.items()}

    def open(self, target: int) -> dict[str, RemoteRegion]:
        """The regions that another rank has allocated for this one, by name; waits for it.

        Raises:
            OutOfMemory: Ranks without common memory: this one has less for its part.
            PeerError: The consumer died or left, or it named memory that it does not share.
            ValueError: No such rank.
        """
        self._check_peer(target)
        offer: _Offer = self.messages.receive(target, _OFFER)
        extents, nbytes = arrange(offer.capacities)
        end: End
        if isinstance(offer.place, SharedArray):
            memory = self._comm.attach(offer.place)
            end = SharedEnd(self._comm, target, memory)
        else:
            address = offer.place
            memory = self._cleared(extents, nbytes)
            gone = partial(self._watch.check_target, target)
            end = WindowEnd(self._far, target, memory, lambda: address, self._watch.check, gone)
            self.messages.send(self._attach(memory), target, _REPLY + offer.number % _REPLIES)
        return {name: RemoteRegion(end, extent) for name, extent in extents.items()}

    def close(self) -> None:
        """Free all regions, once every rank has come here; arrays of them are invalid then.

        Raises:
            PeerError: A rank died or left.
        """
        if self._keep.alive:
            self.messages.meet()
            self._keep.detach()
            if self._window is not None:
                self._window.Unlock_all()
                self._window.Free()
            self._watch.close()
            self._memories.clear()
            self._comm.Free()

    def _abandon(self, error: BaseException) -> None:
        self._watch.fail(str(error))
        leave(self._comm, error)

    # ---- memory ----

    def _cleared(self, extents: Mapping[str, Extent], nbytes: int) -> Bytes:
        """Memory of an allocation in which all flags are down."""
        memory: Bytes = self._comm.empty(nbytes, np.uint8)
        memory[: min((extent.data for extent in extents.values()), default=0)] = 0
        self._memories.append(memory)
        return memory

    def _check_peer(self, rank: int) -> None:
        if not 0 <= rank < self._comm.size or rank == self._comm.rank:
            raise ValueError(
                f"rank {rank} cannot be at the other end; take another rank of the "
                f"{self._comm.size} than this one, {self._comm.rank}"
            )

    def _shares_memory(self, rank: int) -> bool:
        return rank in self._comm.arena_ranks

    @property
    def _far(self) -> MPI.Win:
        assert self._window is not None
        return self._window

    def _attach(self, memory: Bytes) -> int:
        """The address by which other ranks reach this memory."""
        self._far.Attach(memory)
        return MPI.Get_address(memory)


def _strand(memories: list[Bytes], watch: Watch) -> None:
    keep_for_ever(memories)  # of regions that were not closed together: others may write there
    watch.close()  # before another rank waits in MPI for this one


def _opened_window(comm: MPI.Intracomm) -> MPI.Win:
    """A window without memory yet, open to all ranks; collective."""
    window = MPI.Win.Create_dynamic(comm=comm)
    if window.Get_attr(MPI.WIN_MODEL) != MPI.WIN_UNIFIED:
        raise HbmcommError(
            "regions between hosts need an MPI with the unified memory model; this one has "
            "separate copies; take another MPI"
        )
    window.Lock_all(MPI.MODE_NOCHECK)
    return window
