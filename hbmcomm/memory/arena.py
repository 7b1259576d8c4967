"""The memory of all ranks of a communicator, as one of them maps it.

Each rank has ordinary memory next to its CPU for its control block, and memory of the
communicator's kind for its arrays. Every rank maps both of every other rank in full, so memory is
populated without notice to peers. To allocate arrays needs no exchange between ranks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from hbmcomm.errors import OutOfMemory
from hbmcomm.memory.blocks import Block
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.numpy_memory import addresses, capsule, set_handler
from hbmcomm.memory.pool import Pool, ffi, lib

Test = Callable[[], bool]


class RankMemory(NamedTuple):
    """The memory of one rank as this process maps it: addresses and bytes."""

    control: int
    """The rank's control block, page-aligned and zero at first."""
    ordinary: int
    ordinary_bytes: int
    """The ordinary memory: the control block, and all else of the rank except arrays."""
    arrays: int
    array_bytes: int
    claim: int
    """A claim (hbm_is_claimed) that the rank's process holds while it lives."""
    pid: int
    """The rank's PID in this process's PID namespace; 0: it is in another namespace."""


class MappedBytes:
    """Bytes of another rank, for numpy.asarray; its result keeps `owner`, which maps them here."""

    def __init__(self, owner: object, address: int, nbytes: int) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }


class Membership(NamedTuple):
    """The ranks that use the control blocks of an arena, and where each records that it left."""

    rank: int
    boot: int
    claims: tuple[int, ...]
    marks: tuple[int, ...]
    """Address behind each control block of one byte per rank, which that rank sets as it leaves."""
    mapped: tuple[object, ...]
    """The objects that keep the ordinary memory of all ranks mapped."""

    def leave(self) -> None:
        """Record behind every control block that this rank no longer accesses it."""
        for marks in self.marks:
            lib.hbm_mark_left(marks, self.rank)

    def all_gone(self) -> bool:
        """Whether every rank has left or is dead."""
        claims = ffi.new("uintptr_t[]", self.claims)
        return bool(lib.hbm_all_left(self.marks[self.rank], len(self.claims), claims, self.boot))


class Arena:
    """The memory of all ranks of a communicator; it allocates from this rank's own part.

    When the arena is collected, this rank leaves: it records that behind every control block. Its
    own block, and all else that other ranks read, is reused once all ranks have left or died.
    Arrays outlive the arena.

    Attributes:
        kind: Of the arrays.
        boot: A number of this boot of the system, for claims.
        ranks: The memory of every rank.
        pool: This rank's memory of the kind.
        heap, ordinary_heap: `hbm_heap *` of this rank's arrays and of its ordinary memory; offsets
            are from `ranks[rank].arrays` and `ranks[rank].ordinary`.
    """

    def __init__(
        self,
        kind: Kind,
        ordinary: Pool,
        arrays: Pool,
        ranks: Sequence[RankMemory],
        membership: Membership,
        mapped: Iterable[object],
    ) -> None:
        """`mapped`: the objects that keep the arrays of all ranks mapped."""
        self.kind = kind
        self.boot = membership.boot
        self.ranks = tuple(ranks)
        self.heap, self.ordinary_heap = arrays.heap.handle, ordinary.heap.handle
        self._ordinary, self.pool = ordinary, arrays
        self._membership, self._mapped = membership, tuple(mapped)
        self._kept: set[tuple[int, int]] = set()
        self._control = self.ranks[membership.rank].control - ordinary.address
        self._leaving = weakref.finalize(self, _leave, ordinary, (self._control,), membership)
        self._leaving.atexit = False

    def allocate(self, nbytes: int) -> Block:
        """A block of this rank's memory of the kind, with arbitrary contents.

        Raises:
            OutOfMemory: The nodes, the cgroup, the file system or the device have less free.
            HbmcommError: This process is a fork of the rank.
        """
        return self.pool.allocate(self.kind, nbytes)

    def holds(self, block: Any) -> bool:
        """Whether a block (anything with an `address`) is in this rank's memory of the kind."""
        return self.pool.holds(block.address)

    def numpy_memory(self) -> AbstractContextManager[Kind]:
        """A context in which NumPy makes its arrays of 64 KiB and more in this memory."""
        return numpy_memory(self.pool)

    def retire(self, offsets: Iterable[int] = (), test: Test | None = None) -> None:
        """Leave for good: this process accesses no control block of another rank any more.

        Args:
            offsets: Of extents of this rank's ordinary memory that other ranks read, besides its
                control block. They are reused with it, when all ranks have left or died.
            test: They are reused when this is true as well. Later calls that allocate try it. It
                must not refer to the arena.
        """
        if self._leaving.detach() is not None:
            _leave(self._ordinary, (self._control, *offsets), self._membership, test)
        self._ordinary.run_deferred()

    def keep(self, address: int, nbytes: int) -> None:
        """Use memory of an array of this rank no more before all ranks have left or died.

        Other ranks may write into it until then, even when the array is gone.
        """
        if nbytes and (address, nbytes) not in self._kept:
            self._kept.add((address, nbytes))
            start = address - self.pool.address
            self.pool.quarantine(self._membership.all_gone, start, start + nbytes)
            self.pool.run_deferred()

    def later(self, test: Test, act: Callable[[], object]) -> None:
        """Do something once a test is true; calls that allocate try it.

        The memory of all ranks stays mapped until then. Neither may refer to the arena.
        """
        membership = self._membership
        self.pool.when(lambda: membership is not None and test(), act)

    def discard(self) -> None:
        """Do not leave when the arena is collected: it was never used."""
        self._leaving.detach()


def _leave(
    ordinary: Pool, offsets: Iterable[int], membership: Membership, test: Test | None = None
) -> None:
    if ordinary.heap.is_foreign:  # the rank is the parent of this process
        return
    membership.leave()
    gone = membership.all_gone
    for offset in offsets:
        ordinary.give_when(gone if test is None else lambda: gone() and test(), offset)


@contextmanager
def numpy_memory(pool: Pool) -> Iterator[Kind]:
    """Every NumPy array of 64 KiB or more that is made inside is in a pool.

    Smaller arrays, and those for which the pool has no memory, get NumPy's ordinary memory.
    Contexts nest. One applies to the calling thread; threads started inside do not inherit it. The
    pool lives as long as any of the arrays.
    """
    previous = set_handler(_capsule(pool))
    try:
        yield pool.kind
    finally:
        set_handler(previous)


def _capsule(pool: Pool) -> Any:
    handler = lib.hbm_handler_new(pool.heap.handle, pool.address, pool.nbytes)
    if not handler:
        raise OutOfMemory("no memory for NumPy's allocator hook; free arrays, or leave the context")
    return capsule(handler, _END, pool)


lib.hbm_handler_python(*addresses())
_END = int(ffi.cast("uintptr_t", ffi.addressof(lib, "hbm_handler_end")))
