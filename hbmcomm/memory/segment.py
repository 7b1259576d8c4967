"""One segment of shared memory: made by a rank, found by others, mapped on huge-page borders.

Two ways to share one, both without a trace once all have mapped it: an anonymous file (memfd) that
others open through /proc, and a file in /dev/shm for those who share that folder but not /proc.
Which of them works is found out by trying. Knows nothing of ranks or kinds.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hbmcomm.memory import kernel

HUGE_PAGE = 2 * 2**20
SHM = Path("/dev/shm")
Way = Literal["memfd", "shm"]
WAYS: tuple[Way, ...] = ("memfd", "shm")


@dataclass(frozen=True)
class Notice:
    """What others need to find a segment, and to know that they found the right one."""

    path: str
    identity: tuple[int, int]
    """Device and inode: another process may have the same number in another namespace."""
    nbytes: int
    name: str = ""
    """Of an anonymous file, drawn at random: on another machine, a process and a file may have the
    same numbers too."""


class Segment:
    """A mapping of a shared file and the file's descriptor; both go with the object."""

    def __init__(self, descriptor: int, nbytes: int, alignment: int = HUGE_PAGE) -> None:
        self.descriptor = descriptor
        self.nbytes = nbytes
        try:
            self.address = kernel.map_shared(descriptor, nbytes, alignment)
        except OSError:
            os.close(descriptor)
            raise
        self._close = weakref.finalize(self, os.close, descriptor)
        self._unmap = weakref.finalize(self, kernel.unmap, self.address, nbytes)
        self._close.atexit = self._unmap.atexit = False  # arrays may outlive the finalizers

    def close_file(self) -> None:
        """Keep the mapping alone."""
        self._close()


def make(way: Way, nbytes: int) -> tuple[Segment, Notice, Callable[[], None]]:
    """A segment of `nbytes` that holds no memory yet, how to find it, and how to hide it.

    Raises:
        OSError: This way is closed here.
    """
    name = f"hbmcomm.{secrets.token_hex(8)}"
    if way == "memfd":
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        path, hide = f"/proc/{os.getpid()}/fd/{descriptor}", _nothing
    else:
        file = SHM / name
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor, path = os.open(file, flags, 0o600), str(file)

        def hide() -> None:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    try:
        _lengthen(descriptor, nbytes)
        segment = Segment(descriptor, nbytes)
    except OSError:
        hide()
        raise
    notice = Notice(path, _identity(descriptor), nbytes, name if way == "memfd" else "")
    return segment, notice, hide


def find(notice: Notice) -> Segment:
    """Another process's segment.

    Raises:
        OSError: It cannot be opened or mapped from here, or something else lies at that path.
    """
    descriptor = os.open(notice.path, os.O_RDWR | os.O_CLOEXEC)
    if _identity(descriptor) != notice.identity or not _has_name(descriptor, notice.name):
        os.close(descriptor)
        raise FileNotFoundError(f"{notice.path} is another file here")
    return Segment(descriptor, notice.nbytes)


def room_for(way: Way) -> int | None:
    """Bytes that segments made this way can still hold; None: no limit but the memory."""
    if way == "memfd":
        return None
    state = os.statvfs(SHM)
    return state.f_bavail * state.f_frsize


def populate(segment: Segment, offset: int, nbytes: int, huge: bool) -> None:
    """Make whole pages of a range be there.

    Args:
        huge: As huge pages where the kernel gives them. Not for interleaved memory: what was dealt
            out over several nodes would be gathered on one, for every rank on the same.

    Raises:
        OSError: Memory is short.
    """
    address = segment.address + offset
    if huge:
        kernel.advise_huge_pages(address, nbytes)
    kernel.populate(address, nbytes)
    if huge:
        kernel.collapse(address, nbytes)


def _lengthen(descriptor: int, nbytes: int) -> None:
    """Give a new file its length, or close it."""
    try:
        os.ftruncate(descriptor, nbytes)
    except OSError:
        os.close(descriptor)
        raise


def _identity(descriptor: int) -> tuple[int, int]:
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino


def _has_name(descriptor: int, name: str) -> bool:
    return not name or name in str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _nothing() -> None:
    """An anonymous file has no name to hide."""


assert HUGE_PAGE % mmap.PAGESIZE == 0
