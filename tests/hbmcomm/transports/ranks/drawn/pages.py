"""Memory in pages of its own: read-only, or slow at its first access; and pauses of this process.

`install` loads the library that `slow_pages.c` is compiled to; without it no page is slow.
"""

import ctypes
import itertools
import mmap

import numpy as np
from numpy.random import Generator

PARTS = 4
"""The most parts: a rank stalls where it reads its peers' results, and not only before."""
_library: ctypes.CDLL | None = None


def install(path: str) -> None:
    """Handle faults and pauses in this process; faulthandler must be enabled before."""
    global _library
    _library = ctypes.CDLL(path)
    for name in ("slow_protect", "slow_open", "slow_read_only"):
        getattr(_library, name).argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    _library.slow_protect.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_long]
    _library.slow_pause.argtypes = [ctypes.c_long, ctypes.c_long]
    _library.slow_install()


def pause(after: float, seconds: float) -> None:
    """Stop this thread for some seconds, at a moment `after` seconds from now."""
    if _library:
        _library.slow_pause(max(int(after * 1e9), 1), int(seconds * 1e9))


def counts() -> tuple[int, int]:
    """How many slow accesses and pauses there were."""
    return (_library.slow_faults(), _library.slow_pauses()) if _library else (0, 0)


class Pages:
    """An array of bytes in private pages."""

    def __init__(self, nbytes: int) -> None:
        self._mapped = mmap.mmap(-1, max(nbytes, 1))
        self.array = np.frombuffer(self._mapped, "u1", nbytes)
        self.pages = -(-max(nbytes, 1) // mmap.PAGESIZE)
        self._begin = np.frombuffer(self._mapped, "u1").ctypes.data
        self._is_open = True

    def open(self) -> None:
        if _library and not self._is_open:
            _library.slow_open(self._begin, self.pages * mmap.PAGESIZE)
        self._is_open = True

    def make_read_only(self) -> None:
        if _library:
            _library.slow_read_only(self._begin, self.pages * mmap.PAGESIZE)
            self._is_open = False

    def make_slow(self, rng: Generator, seconds: float) -> None:
        """The first access to each of a few parts takes a while, together some seconds."""
        if not _library:
            return
        self._is_open = False
        parts = int(rng.integers(1, min(self.pages, PARTS) + 1))
        edges = [self.pages * part // parts * mmap.PAGESIZE for part in range(parts + 1)]
        for begin, end in itertools.pairwise(edges):
            nanoseconds = int(seconds / parts * 1e9)
            _library.slow_protect(self._begin + begin, end - begin, nanoseconds)

    def __del__(self) -> None:
        self.open()
