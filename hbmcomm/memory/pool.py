"""A pool of shared memory that belongs to this process: its arrays and control blocks are in it.

A pool is a range of addresses with a heap. Subclasses put memory under it: `LocalSegment` populates
a segment, `DeviceMapping` zeroes a device. Peers map the range at other addresses.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from hbmcomm._native import _core  # type: ignore[attr-defined]
from hbmcomm.errors import HbmcommError, OutOfMemory
from hbmcomm.memory import blocks
from hbmcomm.memory.blocks import ALIGNMENT, HUGE_PAGES_FROM, Block
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.segment import HUGE_PAGE

ffi: Any = _core.ffi
lib: Any = _core.lib

STEP = 2 * 2**20
"""Memory is populated, and given back to the system, in steps of this many bytes."""


class Usage(NamedTuple):
    """Bytes of a heap's range, and how many extents are in use."""

    nbytes: int
    taken: int
    parked: int
    """Given back, but quarantined: another process may still write there."""
    populated: int
    idle: int
    """In populated steps without any taken byte."""
    idle_limit: int
    extents: int


class Heap:
    """Which extents of a range are taken; thread-safe; the children of a fork are refused.

    To give an extent back calls no Python code, since Python may collect an array at any step.
    `handle` is the argument of the core's functions.
    """

    def __init__(self, address: int, nbytes: int, step: int = STEP) -> None:
        self.handle = lib.hbm_heap_new(address, nbytes, step)
        if self.handle == ffi.NULL:
            raise _error(ffi.errno)
        self._forks = lib.hbm_forks()
        # Not at exit: arrays may outlive the finalizers.
        weakref.finalize(self, lib.hbm_heap_delete, self.handle).atexit = False

    @property
    def is_foreign(self) -> bool:
        """Whether this process is a fork of the one that owns the memory."""
        return bool(lib.hbm_forks() != self._forks)

    def take(self, nbytes: int, alignment: int) -> int | None:
        """The offset of the lowest free extent; None where none is long enough.

        Raises:
            HbmcommError: This process is a fork of the one that owns the memory.
        """
        offset = int(lib.hbm_heap_reserve(self.handle, nbytes, alignment))
        if offset != lib.HBM_NOWHERE:
            return offset
        if ffi.errno == errno.ENOMEM:
            return None
        raise _error(ffi.errno)

    def give(self, offset: int) -> bool:
        """Give back the extent at an offset: whether there was one; a child of a fork cannot."""
        return int(lib.hbm_heap_free(self.handle, offset)) == 0

    def missing(self, start: int, end: int) -> tuple[int, int] | None:
        """The first run of steps under a range that are not populated; None where all are."""
        run = ffi.new("uint64_t[2]")
        if not lib.hbm_heap_missing(self.handle, start, end, run, run + 1):
            return None
        return int(run[0]), int(run[1])

    def populated(self, start: int, end: int) -> None:
        """Note that whole steps are populated."""
        _check(lib.hbm_heap_populated(self.handle, start, end))

    def discard(self, start: int, end: int) -> None:
        """Free the memory under steps that are not populated; a refusal is ignored."""
        lib.hbm_heap_discard(self.handle, start, end)

    def limit_idle(self, nbytes: int) -> None:
        """Set how many bytes of idle steps stay populated; the system gets the others back."""
        _check(lib.hbm_heap_keep(self.handle, nbytes))

    def hold(self, start: int, end: int) -> int:
        """Allocate nothing in a range until `release` of the number that this returns."""
        number = int(lib.hbm_heap_hold(self.handle, start, end))
        if not number:
            raise _error(ffi.errno)
        return number

    def release(self, number: int) -> None:
        _check(lib.hbm_heap_release(self.handle, number))

    @property
    def usage(self) -> Usage:
        usage = ffi.new("hbm_heap_usage *")
        lib.hbm_heap_use(self.handle, usage)
        return Usage(
            usage.bytes,
            usage.taken,
            usage.parked,
            usage.populated,
            usage.idle,
            usage.keep,
            usage.extents,
        )


def _check(problem: int) -> None:
    if problem:
        raise _error(problem)


def _error(problem: int) -> Exception:
    if problem == errno.ECHILD:
        return HbmcommError(
            "this process is a fork of a rank and no rank itself; allocate in the rank, "
            "or start children with multiprocessing's method 'spawn'"
        )
    return OSError(problem, f"the heap of shared memory: {os.strerror(problem)}")


_MOST_TESTS = 16
"""Tests that one allocation tries at most: they take time."""


class Pool:
    """A range of addresses of this process with a heap; it is freed with its last user.

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
        self._deferred: deque[tuple[Callable[[], bool], Callable[[int], object], int]] = deque()
        self._idle_limit: int | None = None
        # Python may collect an array with a finalizer that allocates, within `fill`, hence RLock.
        self._filling = threading.RLock()
        number = next(_numbers)
        _pools[number] = self
        context = ffi.cast("void *", number)
        lib.hbm_heap_on_grow(self.heap.handle, lib.hbm_heap_grows, context)
        blocks.add(address, self.nbytes, kind)
        weakref.finalize(self, blocks.remove, address).atexit = False

    def allocate(self, kind: Kind, nbytes: int) -> Block:
        """A block of at least one byte with arbitrary contents; it keeps the pool alive.

        Raises:
            OutOfMemory: There is less.
            HbmcommError: This process is a fork of the rank.
        """
        self.run_deferred()
        nbytes = max(nbytes, 1)
        alignment = HUGE_PAGE if nbytes >= HUGE_PAGES_FROM else ALIGNMENT
        offset = self.take(nbytes, alignment)
        return Block(kind, self.address + offset, nbytes, "arena", _give, self, offset)

    def take(self, nbytes: int, alignment: int) -> int:
        """The offset of an extent with memory under it; errors as for `allocate`."""
        offset = self.heap.take(nbytes, alignment)
        if offset is None:
            raise OutOfMemory(
                f"{self.kind.name}: no {nbytes:,} bytes in one piece are free in the "
                f"{self.nbytes:,} that this process reserved; free arrays, or ask for less"
            )
        try:
            self.fill(offset, offset + nbytes)
        except BaseException:
            self.heap.give(offset)
            raise
        return offset

    def fill(self, start: int, end: int) -> None:
        """Put memory under a range that was taken; errors as for `allocate`.

        One thread at a time. After a failure only memory under missing steps is returned, so that
        no thread loses what another has populated.
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
        """Give an extent back once a test is true; later allocations try it.

        The test must not refer to the pool.
        """
        self._deferred.append((test, self.heap.give, offset))

    def quarantine(self, test: Callable[[], bool], start: int, end: int) -> None:
        """Allocate nothing between two offsets until a test is true, as in `give_when`.

        The range is extended to whole cache lines.
        """
        self._deferred.append((test, self.heap.release, self.heap.hold(start, end)))

    def when(self, test: Callable[[], bool], act: Callable[[], object]) -> None:
        """Do something once a test is true; later allocations try it."""
        self._deferred.append((test, lambda _: act(), 0))

    def limit_idle(self, nbytes: int) -> None:
        """Keep at most so many free bytes populated; the lowest limit counts."""
        if self._idle_limit is None or nbytes < self._idle_limit:
            self.heap.limit_idle(nbytes)
            self._idle_limit = nbytes

    def run_deferred(self) -> None:
        """Try the tests of what waits for them, and do what their success allows."""
        for _ in range(min(len(self._deferred), _MOST_TESTS)):
            try:
                test, act, number = self._deferred.popleft()
            except IndexError:  # another thread has it
                return
            if test():
                act(number)
            else:
                self._deferred.append((test, act, number))

    def _fill(self, start: int, end: int) -> None:
        """Put memory under whole steps; OutOfMemory where there is none."""
        raise NotImplementedError


def _give(pool: Pool, offset: int) -> None:
    pool.heap.give(offset)


_numbers = itertools.count(1)
_pools: weakref.WeakValueDictionary[int, Pool] = weakref.WeakValueDictionary()


_raise_later = functools.partial(
    ctypes.PYFUNCTYPE(None, ctypes.c_ulong, *3 * [ctypes.py_object])(  # cffi: None, or a result
        ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
    ),
    threading.main_thread().ident,
)
"""Raises an exception of a signal handler again after an allocation, without its arguments.

cffi calls it with the type of the exception and two values that are not read. It is no Python
function: a pending signal could raise in that one too, before it returns to NumPy or the core."""


@ffi.def_extern(error=-1, onerror=_raise_later)  # type: ignore[untyped-decorator]
def hbm_heap_grows(context: Any, start: int, end: int) -> int:
    """Called by hbm_heap_allocate: 0 once there is memory under a range, 1 where there is none.

    An exception from a signal handler does not mean that memory is short: the range is filled in a
    second try, which hbm_heap_allocate detects, and the interrupt follows. If the exception comes
    before the first line of this function, the core fills the range itself where it may.
    """
    pool = _pools.get(int(ffi.cast("uintptr_t", context)))
    if pool is None:
        return 1
    try:
        return _filled(pool, start, end)
    except BaseException:
        _filled(pool, start, end)
        raise


def _filled(pool: Pool, start: int, end: int) -> int:
    try:
        pool.fill(start, end)
    except (HbmcommError, OSError, MemoryError):
        return 1
    return 0
