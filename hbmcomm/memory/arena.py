"""The memory that the ranks of a node share: one segment per rank, bound to that rank's nodes.

Every rank maps every segment whole, far larger than its memory: it grows where it lies, and a peer
needs no word of it. Making an arena is collective; taking arrays from it is not. How ranks talk to
each other is the caller's affair: all that is needed is an allgather of Python values.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
from collections.abc import Callable, Sequence
from typing import Any

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import capacity, kernel, shared
from hbmcomm.memory.blocks import ALIGNMENT, HUGE_PAGES_FROM, Block
from hbmcomm.memory.heap import Heap, Stretch
from hbmcomm.memory.kinds import Kind, usable_nodes
from hbmcomm.memory.shared import Notice, Segment, Way

Allgather = Callable[[Any], Sequence[Any]]
"""Gives every rank the values of all, in the order of the ranks."""

ADDRESS_SPACE = 2**42
"""Bytes of address space that an arena may take: x86-64 gives a process 2**47, for many arenas."""
STEP = 2 * 2**20
"""The heap grows by whole steps of this many bytes."""


class Arena:
    """The segments of all ranks as this rank sees them; they go when its last user goes.

    Attributes:
        addresses: where each rank's segment is mapped here.
        segment_bytes: the length of every segment, most of which holds no memory.
        lock: descriptor of a file of which rank r's process holds byte r locked while it lives.
    """

    def __init__(self, kind: Kind, rank: int, way: Way, segments: Sequence[Segment]) -> None:
        self.kind = kind
        self.addresses = tuple(segment.address for segment in segments)
        self.segment_bytes = segments[rank].nbytes
        self.lock = segments[0].descriptor
        self._segments = tuple(segments)
        self._own = segments[rank]
        self._way: Way = way
        self._heap: Heap | None = None
        self._populated = 0
        for segment in segments[1:]:
            segment.close_file()

    def reserve(self, nbytes: int) -> None:
        """Keep the beginning of the own segment for other uses; the heap starts after it."""
        self._populate(nbytes)
        self._heap = Heap(nbytes, self.segment_bytes)

    def allocate(self, nbytes: int) -> Block:
        """A block of the own segment; it holds anything.

        Raises:
            OutOfMemory: The nodes, the cgroup or the file system have less than that free.
        """
        heap = self._heap
        assert heap is not None
        nbytes = max(nbytes, 1)
        alignment = shared.HUGE_PAGE if nbytes >= HUGE_PAGES_FROM else ALIGNMENT
        taken = heap.take(-(-nbytes // ALIGNMENT) * ALIGNMENT, alignment)
        if taken is None:
            raise OutOfMemory(
                f"{self.kind.name}: {nbytes:,} bytes do not fit in the arena's address space"
            )
        try:
            self._populate(taken.end)
        except OutOfMemory:
            heap.give(taken)
            raise
        address = self._own.address + taken.start
        return Block(self.kind, address, nbytes, "arena", _give_back, self, taken)

    def holds(self, block: Block) -> bool:
        """Whether a block lies in the own segment, where the other ranks find it."""
        return 0 <= block.address - self._own.address < self.segment_bytes

    def _populate(self, end: int) -> None:
        """Let the own segment hold memory up to an offset."""
        wanted = min(-(-end // STEP) * STEP, self.segment_bytes)
        more = wanted - self._populated
        if more <= 0:
            return
        room = shared.room_for(self._way)
        if room is not None and more > room:
            raise OutOfMemory(
                f"{self.kind.name}: asked for {more:,} bytes, {shared.SHM} has {room:,} left; "
                "enlarge it (docker: --shm-size)"
            )
        place = self.kind
        if not place.strict:  # may spill to any node that is allowed
            place = dataclasses.replace(place, nodes=usable_nodes())
        capacity.require(place, more)
        for start in range(self._populated, wanted, capacity.STEP):
            length = min(capacity.STEP, wanted - start)
            if start > self._populated:
                capacity.require(place, length)
            try:
                shared.populate(self._own, start, length)
            except OSError as error:
                raise OutOfMemory(
                    f"{self.kind.name}: {length:,} bytes of shared memory were refused ({error})"
                ) from None
        self._populated = wanted


def _give_back(arena: Arena, taken: Stretch) -> None:
    heap = arena._heap
    assert heap is not None
    heap.give(taken)


def make(allgather: Allgather, rank: int, kind: Kind, reserved: int) -> Arena:
    """The arena of all ranks that take part; collective.

    Args:
        allgather: How the ranks exchange values.
        rank: This rank's number among them.
        kind: Where this rank's segment lies.
        reserved: Bytes at the beginning of each segment that are not for arrays; they are zero.

    Raises:
        ArenaUnavailable: On every rank: some rank cannot map another's memory; says which.
        OutOfMemory, KindUnavailable: On every rank, of the first rank that lacks the memory.
    """
    nbytes = min(allgather(_segment_bytes(len(allgather(None)))))
    refused = ""
    for way in shared.WAYS:
        arena, problem = _attempt(allgather, rank, kind, reserved, nbytes, way)
        if arena is not None:
            return arena
        refused = f"{refused}; {problem}" if refused else problem
    raise ArenaUnavailable(
        f"the ranks cannot share memory: {refused}; take transport='mpi', or let containers "
        "share their IPC namespace"
    )


def _attempt(
    allgather: Allgather, rank: int, kind: Kind, reserved: int, nbytes: int, way: Way
) -> tuple[Arena | None, str]:
    """An arena made one way, or why there is none; alike on every rank."""
    own: Segment | None = None
    notice: Notice | None = None
    hide: Callable[[], None] = lambda: None  # noqa: E731
    problem: HbmcommError | str | None = None
    try:
        own, notice, hide = shared.make(way, nbytes)
        _bind(kind, own)
    except OSError as error:
        problem = f"rank {rank}: {way}: {error}"
    except HbmcommError as error:
        problem = error
    try:
        told = allgather((notice, problem))
        segments: list[Segment] = []
        if not any(each for _, each in told):
            problem = _find_all(told, own, rank, segments)
            told = allgather((None, problem))
        arena = None
        if not any(each for _, each in told):
            arena = Arena(kind, rank, way, segments)
            try:
                fcntl.lockf(arena.lock, fcntl.LOCK_EX, 1, rank)
                arena.reserve(reserved)
            except OSError as error:  # a kernel or file system without record locks
                problem = f"rank {rank}: {way}: no lock ({error})"
            except HbmcommError as error:
                problem = error
            told = allgather((None, problem))
    finally:
        hide()
    for number, (_, each) in enumerate(told):
        if isinstance(each, HbmcommError):
            raise type(each)(f"rank {number}: {each}")
    found = next((each for _, each in told if each), "")
    return None if found else arena, found


def _find_all(
    told: Sequence[tuple[Notice, Any]], own: Segment | None, rank: int, segments: list[Segment]
) -> str | None:
    for number, (notice, _) in enumerate(told):
        try:
            segments.append(own if own and number == rank else shared.find(notice))
        except OSError as error:
            return f"rank {rank} cannot map the memory of rank {number} ({error})"
    return None


def _bind(kind: Kind, segment: Segment) -> None:
    if kind.policy == "default":
        return
    try:
        kernel.bind(segment.address, segment.nbytes, kind.policy, kind.nodes)
    except OSError as error:
        if not set(usable_nodes()) <= set(kind.nodes):
            raise KindUnavailable(
                f"{kind.name}: binding shared memory was refused ({error}); "
                "in a container, allow mbind (docker: --cap-add SYS_NICE)"
            ) from None


def _segment_bytes(ranks: int) -> int:
    """As much as the machine's memory, or a rank's share of the address space."""
    memory = os.sysconf("SC_PHYS_PAGES") * kernel.PAGE
    return min(memory, ADDRESS_SPACE // ranks) // STEP * STEP
