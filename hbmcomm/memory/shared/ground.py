"""Shared memory that belongs to this process: where its arrays and control blocks are made.

A ground is a range of addresses with a heap. Subclasses put memory under a range: `own` populates
a segment, `dax.holding` zeroes a device. Peers see the range at addresses of their own.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from hbmcomm.errors import HbmcommError, OutOfMemory
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.private import regions
from hbmcomm.memory.private.blocks import ALIGNMENT, HUGE_PAGES_FROM, Block
from hbmcomm.memory.shared.heap import STEP, Heap, ffi, lib
from hbmcomm.memory.shared.segment import HUGE_PAGE

_LOOKS = 16
"""Tests that one allocation tries at most: they take time."""


class Ground:
    """A range of addresses of this process with a heap; it goes with its last user.

    Attributes:
        kind: What memory this is.
        address, nbytes: The range.
        heap: Which extents of it are taken.
    """

    def __init__(self, kind: Kind, address: int, nbytes: int) -> None:
        self.kind = kind
        self.address = address
        self.heap = Heap(address, nbytes)
        self.nbytes = nbytes // STEP * STEP
        self._waiting: deque[tuple[Callable[[], bool], Callable[[int], object], int]] = deque()
        self._kept: int | None = None
        # Python may collect an array with a finalizer that allocates, within `hold`, hence RLock.
        self._filling = threading.RLock()
        number = next(_numbers)
        _grounds[number] = self
        context = ffi.cast("void *", number)
        lib.hbm_heap_on_grow(self.heap.handle, lib.hbm_heap_grows, context)
        regions.add(address, self.nbytes, kind)
        weakref.finalize(self, regions.remove, address).atexit = False

    def allocate(self, kind: Kind, nbytes: int) -> Block:
        """A block of at least one byte, which holds anything; the ground lives as long as it.

        Raises:
            OutOfMemory: There is less.
            HbmcommError: This process is a fork of the rank.
        """
        self.look()
        nbytes = max(nbytes, 1)
        alignment = HUGE_PAGE if nbytes >= HUGE_PAGES_FROM else ALIGNMENT
        offset = self.take(nbytes, alignment)
        return Block(kind, self.address + offset, nbytes, "arena", _give, self, offset)

    def take(self, nbytes: int, alignment: int) -> int:
        """The offset of an extent with memory under it; errors are those of `allocate`."""
        offset = self.heap.take(nbytes, alignment)
        if offset is None:
            raise OutOfMemory(
                f"{self.kind.name}: no {nbytes:,} bytes in one piece are free in the "
                f"{self.nbytes:,} that this process reserved; free arrays, or ask for less"
            )
        try:
            self.hold(offset, offset + nbytes)
        except BaseException:
            self.heap.give(offset)
            raise
        return offset

    def hold(self, start: int, end: int) -> None:
        """Put memory under a range that was taken; errors are those of `allocate`.

        One thread at a time. After a failure only memory under missing steps goes back, so that no
        thread loses what another has populated.
        """
        if self.heap.missing(start, end) is None:
            return
        with self._filling:
            while (run := self.heap.missing(start, end)) is not None:
                try:
                    self._fill(*run)
                except BaseException:
                    self.heap.discard(*run)
                    raise
                self.heap.populated(*run)

    def holds(self, address: int) -> bool:
        """Whether an address is in the range."""
        return self.address <= address < self.address + self.nbytes

    def give_when(self, test: Callable[[], bool], offset: int) -> None:
        """Give an extent back once a test is true; it is tried at later allocations.

        Args:
            test: Must not refer to the ground.
            offset: Where the extent was taken.
        """
        self._waiting.append((test, self.heap.give, offset))

    def quarantine(self, test: Callable[[], bool], start: int, end: int) -> None:
        """Hand out no memory between two offsets until a test is true.

        Args:
            test: Must not refer to the ground.
            start, end: Of the range, which is extended to whole cache lines.
        """
        self._waiting.append((test, self.heap.release, self.heap.hold(start, end)))

    def when(self, test: Callable[[], bool], act: Callable[[], object]) -> None:
        """Do something once a test is true; it is tried at later allocations."""
        self._waiting.append((test, lambda _: act(), 0))

    def limit(self, keep: int) -> None:
        """Keep at most so many free bytes populated; the lowest of all limits counts."""
        if self._kept is None or keep < self._kept:
            self.heap.keep(keep)
            self._kept = keep

    def look(self) -> None:
        """Try the tests of extents and ranges that wait to be used again."""
        for _ in range(min(len(self._waiting), _LOOKS)):
            try:
                test, act, number = self._waiting.popleft()
            except IndexError:  # another thread has it
                return
            if test():
                act(number)
            else:
                self._waiting.append((test, act, number))

    def _fill(self, start: int, end: int) -> None:
        """Put memory under whole steps; OutOfMemory where there is none."""
        raise NotImplementedError


def _give(ground: Ground, offset: int) -> None:
    ground.heap.give(offset)


_numbers = itertools.count(1)
_grounds: weakref.WeakValueDictionary[int, Ground] = weakref.WeakValueDictionary()


_raise_later = functools.partial(
    ctypes.PYFUNCTYPE(None, ctypes.c_ulong, *3 * [ctypes.py_object])(  # cffi: None, or a result
        ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
    ),
    threading.main_thread().ident,
)
"""What a signal's handler raised inside an allocation comes again after it; without its arguments.

Called by cffi with the type of the exception and two things that are not read. No function written
in Python: that would raise itself, before it returned to NumPy or the core."""


@ffi.def_extern(error=-1, onerror=_raise_later)  # type: ignore[untyped-decorator]
def hbm_heap_grows(context: Any, start: int, end: int) -> int:
    """Called by hbm_heap_get: 0 once there is memory under a range, 1 where there is none.

    What a signal's handler raises is no lack of memory: the range is filled in a second try, which
    hbm_heap_get sees, and the interrupt follows. Before the first line it ends this function; the
    core then fills the range itself, if it may.
    """
    ground = _grounds.get(int(ffi.cast("uintptr_t", context)))
    if ground is None:
        return 1
    try:
        return _filled(ground, start, end)
    except BaseException:
        _filled(ground, start, end)
        raise


def _filled(ground: Ground, start: int, end: int) -> int:
    try:
        ground.hold(start, end)
    except (HbmcommError, OSError, MemoryError):
        return 1
    return 0
