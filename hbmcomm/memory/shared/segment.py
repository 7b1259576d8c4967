"""One segment of shared memory: made by a process, found by others, mapped on huge-page borders.

There are two ways to share one: an anonymous file (memfd), which others open through /proc, and a
file in /dev/shm, for processes that share that folder but not /proc. Processes find out by trying
which way works. A file is opened for writing only after it is known to be the one in the notice.
Knows nothing of ranks or kinds.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import weakref
from pathlib import Path
from typing import Literal, NamedTuple

from hbmcomm.memory.policy import kernel

HUGE_PAGE = 2 * 2**20
SHM = Path("/dev/shm")
Way = Literal["memfd", "shm"]
WAYS: tuple[Way, ...] = ("memfd", "shm")
"""In the order in which they are tried."""

_O_PATH = 0o10000000  # missing in Pythons built for a very old glibc
_DRAWN = 8  # random bytes in a name


class Notice(NamedTuple):
    """What another process needs to find a segment, and to know that it found the right one."""

    way: Way
    path: str
    device: int
    inode: int
    name: str
    """Drawn at random: in another PID namespace the same process, descriptor and inode numbers may
    belong to another file."""
    nbytes: int

    @property
    def identity(self) -> tuple[int, int, str]:
        """What no two segments have in common."""
        return self.device, self.inode, self.name


class Mapping:
    """A shared mapping of a whole file; it goes with the object."""

    def __init__(self, descriptor: int, nbytes: int, alignment: int = HUGE_PAGE) -> None:
        """Raises OSError where the kernel refuses; the descriptor stays the caller's."""
        self.nbytes = nbytes
        self.address = kernel.map_shared(descriptor, nbytes, alignment)
        # Not at exit: arrays may outlive the finalizers then, and the process ends anyway.
        weakref.finalize(self, kernel.unmap, self.address, nbytes).atexit = False


class Segment(Mapping):
    """A segment that this process made or found.

    Attributes:
        notice: How others find it.
        descriptor: Of the file, in the process that made it; -1 elsewhere.
    """

    def __init__(self, notice: Notice, descriptor: int, keep_open: bool) -> None:
        """Maps a file, and closes it unless others are to find it through this process."""
        self.notice = notice
        self.descriptor = descriptor if keep_open else -1
        try:
            super().__init__(descriptor, notice.nbytes)
        except OSError:
            os.close(descriptor)
            raise
        if keep_open:
            weakref.finalize(self, os.close, descriptor).atexit = False
        else:
            os.close(descriptor)

    def hide(self) -> None:
        """Remove the file's name, if it has one; no process finds the segment from then on."""
        if self.notice.way == "shm":
            with contextlib.suppress(FileNotFoundError):
                Path(self.notice.path).unlink()


def make(way: Way, nbytes: int) -> Segment:
    """A new segment that holds no memory yet.

    Raises:
        OSError: This way is closed here; with ENOMEM or EFBIG, to a segment of that length.
    """
    name = f"hbmcomm.{secrets.token_hex(_DRAWN)}"
    if way == "memfd":
        descriptor = kernel.memory_file(name, nbytes)
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        path = str(SHM / name)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            os.ftruncate(descriptor, nbytes)
        except OSError:
            os.close(descriptor)
            Path(path).unlink()
            raise
    state = os.fstat(descriptor)
    notice = Notice(way, path, state.st_dev, state.st_ino, name, nbytes)
    try:
        return Segment(notice, descriptor, keep_open=True)
    except OSError:
        if way == "shm":
            Path(path).unlink()
        raise


def find(notice: Notice) -> Segment:
    """Another process's segment.

    Raises:
        OSError: It cannot be opened or mapped from here, or another file is at that path.
    """
    _check_form(notice)
    # O_PATH opens nothing: to open a device or a FIFO would have effects.
    look = _O_PATH | os.O_CLOEXEC
    if notice.way == "shm":  # there a name may be a link; in /proc it always is one
        look |= os.O_NOFOLLOW
    seen = os.open(notice.path, look)
    try:
        _check_identity(seen, notice)
        # /proc/self/fd leads to the file that was checked, whatever its path leads to by now.
        path = f"/proc/self/fd/{seen}" if notice.way == "memfd" else notice.path
        follow = 0 if notice.way == "memfd" else os.O_NOFOLLOW
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | follow)
    finally:
        os.close(seen)
    try:
        _check_identity(descriptor, notice)
        _check_length(descriptor, notice)
    except OSError:
        os.close(descriptor)
        raise
    return Segment(notice, descriptor, keep_open=False)


def room_for(way: Way) -> int | None:
    """Bytes that segments made this way can still hold; None: no limit but the memory."""
    if way == "memfd":
        return None
    state = os.statvfs(SHM)
    return state.f_bavail * state.f_frsize


def populate(address: int, nbytes: int, huge: bool) -> None:
    """Make whole pages of a segment be there.

    Args:
        address, nbytes: A range of whole pages.
        huge: As huge pages where the kernel gives them. Not for interleaved memory, whose pages the
            kernel would gather on one node.

    Raises:
        OSError: Memory is short.
    """
    if huge:
        kernel.advise_huge_pages(address, nbytes)
    kernel.populate(address, nbytes)
    if huge:
        kernel.collapse(address, nbytes)


def _check_form(notice: Notice) -> None:
    """A notice comes from another process: its path must be one that `make` could have given."""
    paths = {"memfd": r"/proc/\d+/fd/\d+", "shm": re.escape(f"{SHM}/{notice.name}")}
    if (
        not re.fullmatch(paths.get(notice.way, "(?!)"), notice.path)
        or not re.fullmatch(rf"hbmcomm\.[0-9a-f]{{{2 * _DRAWN}}}", notice.name)
        or not 0 < notice.nbytes < 2**62
        or notice.nbytes % HUGE_PAGE
    ):
        raise FileNotFoundError(f"{notice.path!r} is no segment of hbmcomm")


def _check_identity(descriptor: int, notice: Notice) -> None:
    state = os.fstat(descriptor)
    right = stat.S_ISREG(state.st_mode) and (state.st_dev, state.st_ino) == notice.identity[:2]
    if right and notice.way == "memfd":  # the name in /dev/shm is the path itself
        link = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (no real path)
        right = link == f"/memfd:{notice.name} (deleted)"
    if not right:
        raise FileNotFoundError(f"{notice.path} is another file here")


def _check_length(descriptor: int, notice: Notice) -> None:
    found = os.fstat(descriptor).st_size
    if found != notice.nbytes:
        raise FileNotFoundError(f"{notice.path} has {found:,} bytes, not {notice.nbytes:,}")
    if notice.way == "memfd" and not kernel.has_final_length(descriptor):
        raise FileNotFoundError(f"{notice.path} could be cut short by any process")
