"""The C core's heap as Python sees it: extents by offset, and which steps are populated.

Turns errno values into exceptions. It manages offsets only; a `Pool` puts memory under them.
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
        found = ffi.new("hbm_heap_usage *")
        lib.hbm_heap_use(self.handle, found)
        return Usage(
            found.bytes,
            found.taken,
            found.parked,
            found.populated,
            found.idle,
            found.keep,
            found.extents,
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
