"""The memory of all ranks of a communicator, as one of them sees it.

Each rank has ordinary memory next to its CPU, in which its control block is, and memory of the
communicator's kind for its arrays. Every rank maps both of every other rank, whole: they grow where
they are, without notice to peers. Making arrays needs no exchange; `make` makes arenas.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.private.blocks import Block
from hbmcomm.memory.shared import handler
from hbmcomm.memory.shared.ground import Ground
from hbmcomm.memory.shared.heap import ffi, lib

Test = Callable[[], bool]


class Place(NamedTuple):
    """Where a rank's memory is mapped in this process: addresses and bytes."""

    control: int
    """The rank's control block: zero at first, from a border of pages on."""
    ordinary: int
    ordinary_bytes: int
    """The range that the control block is in, and all else of the rank's that is not arrays."""
    arrays: int
    array_bytes: int
    claim: int
    """A claim (hbm_is_taken) that the rank's process holds while it lives."""
    pid: int
    """The rank's process as this one numbers it; 0: it is in another PID namespace."""


class Roll(NamedTuple):
    """The ranks that use the control blocks of an arena, and where each records its leave."""

    rank: int
    boot: int
    claims: tuple[int, ...]
    marks: tuple[int, ...]
    """Addresses behind the control blocks, of one byte for each rank that is set when it left."""
    mapped: tuple[object, ...]
    """What keeps the ordinary memory of all ranks mapped."""

    def leave(self) -> None:
        """Record behind every control block that this rank touches it no more."""
        for marks in self.marks:
            lib.hbm_leave(marks, self.rank)

    def all_gone(self) -> bool:
        """Whether every rank has left or is dead."""
        claims = ffi.new("uintptr_t[]", self.claims)
        return bool(lib.hbm_all_gone(self.marks[self.rank], len(self.claims), claims, self.boot))


class Arena:
    """The memory of all ranks that take part; `arrays` and `ordinary` are this rank's own.

    When the arena is collected, this rank leaves: it records that behind every control block. Its
    own block is reused once all ranks have left or died. Arrays outlive the arena.

    Attributes:
        kind: Of the arrays.
        boot: A number of this boot of the system, for claims.
        ranks: The place of every rank.
        heap, ordinary_heap: `hbm_heap *` of this rank's arrays and of its ordinary memory; offsets
            are from `ranks[rank].arrays` and `ranks[rank].ordinary`.
    """

    def __init__(
        self,
        kind: Kind,
        ordinary: Ground,
        arrays: Ground,
        ranks: Sequence[Place],
        roll: Roll,
        mapped: Iterable[object],
    ) -> None:
        """`mapped`: what keeps the arrays of all ranks mapped."""
        self.kind = kind
        self.boot = roll.boot
        self.ranks = tuple(ranks)
        self.heap, self.ordinary_heap = arrays.heap.handle, ordinary.heap.handle
        self._ordinary, self._arrays = ordinary, arrays
        self._roll, self._mapped = roll, tuple(mapped)
        self._control = self.ranks[roll.rank].control - ordinary.address
        self._leaving = weakref.finalize(self, _leave, ordinary, self._control, roll)
        self._leaving.atexit = False

    def allocate(self, nbytes: int) -> Block:
        """A block of this rank's memory of the kind; it holds anything.

        Raises:
            OutOfMemory: The nodes, the cgroup, the file system or the device have less than that
                free.
            HbmcommError: This process is a fork of the rank.
        """
        return self._arrays.allocate(self.kind, nbytes)

    def holds(self, block: Any) -> bool:
        """Whether a block (anything with an `address`) is where the other ranks find it."""
        return self._arrays.holds(block.address)

    def numpy_memory(self) -> AbstractContextManager[Kind]:
        """A context in which NumPy makes its arrays of 64 KiB and more in this memory."""
        return handler.numpy_memory(self._arrays)

    def retire(self, test: Test | None = None) -> None:
        """Leave for good: this process touches no control block of another rank any more.

        Args:
            test: This rank's control block is reused when all ranks have left and this is true.
                Later calls that allocate try it. It must not refer to the arena.
        """
        if self._leaving.detach() is not None:
            _leave(self._ordinary, self._control, self._roll, test)
        self._ordinary.look()

    def quarantine(self, ranges: Iterable[tuple[int, int]], test: Test | None = None) -> None:
        """Keep memory that other ranks may still write into from being used again.

        Args:
            ranges: Address and bytes of each range; parts outside this rank's arrays and ordinary
                memory are left out.
            test: The ranges may be used again when this is true; by default, when all ranks have
                left. Later calls that allocate try it. It must not refer to the arena.
        """
        wait = test or self._roll.all_gone
        for address, nbytes in ranges:
            for ground in (self._arrays, self._ordinary):
                start = max(address - ground.address, 0)
                end = min(address + nbytes - ground.address, ground.nbytes)
                if start < end:
                    ground.quarantine(wait, start, end)
                    break
        self._arrays.look()

    def later(self, test: Test, act: Callable[[], object]) -> None:
        """Do something once a test is true; calls that allocate try it.

        The memory of all ranks stays mapped until then. Neither may refer to the arena.
        """
        roll = self._roll
        self._arrays.when(lambda: roll is not None and test(), act)

    def forget(self) -> None:
        """Do not leave when the arena is collected: it came to nothing."""
        self._leaving.detach()


def _leave(ordinary: Ground, control: int, roll: Roll, test: Test | None = None) -> None:
    if ordinary.heap.is_foreign:  # the rank is the parent of this process
        return
    roll.leave()
    gone = roll.all_gone
    ordinary.give_when(gone if test is None else lambda: gone() and test(), control)
