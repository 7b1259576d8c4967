"""The C core's heap as Python sees it: extents by offset, and which steps are populated.

Turns errno values into exceptions, and knows no memory: where it comes from is `ground`'s affair.
"""

from __future__ import annotations

import errno
import os
import weakref
from typing import Any, NamedTuple

from hbmcomm._native import _core  # type: ignore[attr-defined]
from hbmcomm.errors import HbmcommError

ffi: Any = _core.ffi
lib: Any = _core.lib

STEP = 2 * 2**20
"""Memory is populated, and given back to the system, in steps of this many bytes."""


class Usage(NamedTuple):
    """Bytes of a heap's range, and how many extents are in use."""

    nbytes: int
    taken: int
    parked: int
    """Given back, but held: another process may still write there."""
    populated: int
    idle: int
    """In populated steps that are free from end to end."""
    keep: int
    extents: int


class Heap:
    """Which extents of a range are taken; safe in threads, refused in the children of a fork.

    Giving back calls no Python at all, since Python may collect an array at any step of its own.
    `handle` is what functions of the core take.
    """

    def __init__(self, address: int, nbytes: int, step: int = STEP) -> None:
        self.handle = lib.hbm_heap_new(address, nbytes, step)
        if self.handle == ffi.NULL:
            raise _error(ffi.errno)
        self._forks = lib.hbm_forks()
        # Not at exit: arrays may outlive the finalizers then.
        weakref.finalize(self, lib.hbm_heap_free, self.handle).atexit = False

    @property
    def is_foreign(self) -> bool:
        """Whether this process is a fork of the one that owns the memory."""
        return bool(lib.hbm_forks() != self._forks)

    def take(self, nbytes: int, alignment: int) -> int | None:
        """The offset of the lowest free extent; None where none is long enough.

        Raises:
            HbmcommError: This process is a fork of the one that owns the memory.
        """
        offset = int(lib.hbm_heap_take(self.handle, nbytes, alignment))
        if offset != lib.HBM_NOWHERE:
            return offset
        if ffi.errno == errno.ENOMEM:
            return None
        raise _error(ffi.errno)

    def give(self, offset: int) -> bool:
        """Whether what was taken at that offset is given back; a child of a fork cannot."""
        return int(lib.hbm_heap_give(self.handle, offset)) == 0

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
        """Return what is under steps that are not populated; a refusal is none."""
        lib.hbm_heap_discard(self.handle, start, end)

    def keep(self, nbytes: int) -> None:
        """How many bytes of idle steps stay populated; more go back to the system."""
        _check(lib.hbm_heap_keep(self.handle, nbytes))

    def hold(self, start: int, end: int) -> int:
        """Hand out nothing in a range until it is released by the number that this returns."""
        number = int(lib.hbm_heap_hold(self.handle, start, end))
        if not number:
            raise _error(ffi.errno)
        return number

    def release(self, number: int) -> None:
        """End a hold."""
        _check(lib.hbm_heap_release(self.handle, number))

    @property
    def usage(self) -> Usage:
        """What is in use now."""
        found = ffi.new("hbm_heap_usage *")
        lib.hbm_heap_use(self.handle, found)
        return Usage(
            *(found.bytes, found.taken, found.parked, found.populated, found.idle, found.keep),
            extents=found.extents,
        )


def _check(problem: int) -> None:
    if problem:
        raise _error(problem)


def _error(problem: int) -> Exception:
    if problem == errno.ECHILD:
        return HbmcommError(
            "this process is a fork of a rank and is none itself; allocate in the rank, "
            "or start children with multiprocessing's method 'spawn'"
        )
    return OSError(problem, f"the heap of shared memory: {os.strerror(problem)}")
