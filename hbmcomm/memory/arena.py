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
from typing import Any, Protocol

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import capacity, kernel
from hbmcomm.memory import segment as shared
from hbmcomm.memory.blocks import ALIGNMENT, HUGE_PAGES_FROM, Block, why_unbound
from hbmcomm.memory.heap import Heap, Stretch
from hbmcomm.memory.kinds import Kind, usable_nodes
from hbmcomm.memory.segment import Notice, Segment, Way

Allgather = Callable[[Any], Sequence[Any]]
"""Gives every rank the values of all, in the order of the ranks."""

ADDRESS_SPACE = 2**42
"""Bytes of address space that an arena may take: x86-64 gives a process 2**47, for many arenas."""
STEP = 2 * 2**20
"""The heap grows by whole steps of this many bytes."""


class Ground(Protocol):
    """This rank's own part of the shared memory, and which stretches of it are free."""

    address: int
    nbytes: int
    heap: Heap

    def hold(self, end: int) -> None:
        """Let there be memory up to an offset; OutOfMemory where there is none."""


class Arena:
    """The memory of all ranks as this rank sees it; it goes when its last user goes.

    Attributes:
        addresses: where the reserved part of each rank's memory is mapped here; its arrays follow.
        segment_bytes: from there to the end of this rank's own memory.
        lock: descriptor of a file of which rank r's process holds byte r locked while it lives;
            -1 where claims stand for locks.
        claims, boot: where each rank's claim is mapped, and the boot that it belongs to.
    """

    def __init__(
        self,
        kind: Kind,
        ground: Ground,
        addresses: Sequence[int],
        rank: int,
        start: int,
        *,
        lock: int = -1,
        claims: Sequence[int] = (),
        boot: int = 0,
        kept: object = None,
    ) -> None:
        """`start`: where in the own ground arrays may begin; `kept` lives as long as the arena."""
        self.kind = kind
        self.addresses = tuple(addresses)
        self.segment_bytes = ground.address + ground.nbytes - self.addresses[rank]
        self.lock, self.claims, self.boot = lock, tuple(claims), boot
        self._ground = ground
        self._start = start
        self._kept = kept

    def allocate(self, nbytes: int) -> Block:
        """A block of the own memory; it holds anything.

        Raises:
            OutOfMemory: The nodes, the cgroup, the file system or the device have less than that
                free.
        """
        nbytes = max(nbytes, 1)
        alignment = shared.HUGE_PAGE if nbytes >= HUGE_PAGES_FROM else ALIGNMENT
        length = -(-nbytes // ALIGNMENT) * ALIGNMENT
        taken = self._ground.heap.take(length, alignment, self._start)
        if taken is None:
            raise OutOfMemory(
                f"{self.kind.name}: no {nbytes:,} bytes in one piece are free in this rank's "
                f"{self._ground.nbytes:,}; free arrays, or ask for less"
            )
        try:
            self._ground.hold(taken.end)
        except OutOfMemory:
            self._ground.heap.give(taken)
            raise
        address = self._ground.address + taken.start
        return Block(self.kind, address, nbytes, "arena", _give_back, self, taken)

    def holds(self, block: Block) -> bool:
        """Whether a block lies where the other ranks find it."""
        offset = block.address - self._ground.address
        return self._start <= offset < self._ground.nbytes


class Growing:
    """A segment of ordinary memory, as much of it as is needed."""

    def __init__(self, kind: Kind, way: Way, segment: Segment) -> None:
        self.address, self.nbytes = segment.address, segment.nbytes
        self.heap = Heap(0, segment.nbytes)
        self._kind = kind
        self._way: Way = way
        self._segment = segment
        self._populated = 0

    def hold(self, end: int) -> None:
        """Populate the segment up to an offset, in whole steps."""
        name = self._kind.name
        wanted = min(-(-end // STEP) * STEP, self.nbytes)
        more = wanted - self._populated
        if more <= 0:
            return
        room = shared.room_for(self._way)
        if room is not None and more > room:
            raise OutOfMemory(
                f"{name}: asked for {more:,} bytes, {shared.SHM} has {room:,} left; "
                "enlarge it (docker: --shm-size)"
            )
        place = self._kind
        if not place.strict:  # may spill to any node that is allowed
            place = dataclasses.replace(place, nodes=usable_nodes())
        try:
            self._populate(place, more)
        except OutOfMemory:
            kernel.discard(self.address + self._populated, more, shared=True)
            raise
        self._populated = wanted

    def _populate(self, place: Kind, more: int) -> None:
        huge = self._kind.policy != "interleave"
        for start, length in capacity.steps(place, more):
            try:
                shared.populate(self._segment, self._populated + start, length, huge)
            except OSError as error:
                raise OutOfMemory(
                    f"{place.name}: {length:,} bytes of shared memory were refused ({error})"
                ) from None


def _give_back(arena: Arena, taken: Stretch) -> None:
    arena._ground.heap.give(taken)


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
            try:
                arena = _arena(kind, rank, way, segments, reserved)
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


def _arena(kind: Kind, rank: int, way: Way, segments: Sequence[Segment], reserved: int) -> Arena:
    lock = segments[0].descriptor
    fcntl.lockf(lock, fcntl.LOCK_EX, 1, rank)
    ground = Growing(kind, way, segments[rank])
    ground.hold(reserved)
    for segment in segments[1:]:
        segment.close_file()
    addresses = [segment.address for segment in segments]
    return Arena(kind, ground, addresses, rank, reserved, lock=lock, kept=tuple(segments))


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
            raise KindUnavailable(why_unbound(kind, error)) from None


def _segment_bytes(ranks: int) -> int:
    """As much as the machine's memory, or a rank's share of the address space."""
    memory = os.sysconf("SC_PHYS_PAGES") * kernel.PAGE
    return min(memory, ADDRESS_SPACE // ranks) // STEP * STEP
