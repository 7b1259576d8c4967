"""A segment of shared memory: created by one process, attached by others, aligned to huge pages.

Its backing is an anonymous file (memfd), which others open through /proc, or a file in /dev/shm,
for processes that share that folder but not /proc. Processes find out which one works by trying;
where HBMCOMM_SHM names a folder, files in it are the only backing. A file is opened for writing
only after it is known to be the one of the locator. Knows nothing of ranks or kinds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import weakref
from pathlib import Path
from typing import Literal, NamedTuple

from hbmcomm.memory import kernel, shm_folder

HUGE_PAGE = 2 * 2**20
Backing = Literal["memfd", "shm"]
BACKINGS: tuple[Backing, ...] = ("memfd", "shm")
"""In the order in which they are tried."""

_O_PATH = 0o10000000  # missing in Pythons built for a very old glibc
_RANDOM_BYTES = 8  # in a name


class Locator(NamedTuple):
    """What another process needs to find a segment, and to verify that it found the right one."""

    backing: Backing
    path: str
    device: int
    inode: int
    name: str
    """Random: in another PID namespace the same process, descriptor and inode numbers may belong to
    another file."""
    nbytes: int

    @property
    def identity(self) -> tuple[int, int, str]:
        """Different for any two segments."""
        return self.device, self.inode, self.name


class Mapping:
    """A shared mapping of a whole file; collecting the object removes it."""

    def __init__(self, descriptor: int, nbytes: int, alignment: int = HUGE_PAGE) -> None:
        """Raises OSError where the kernel refuses; the descriptor stays the caller's."""
        self.nbytes = nbytes
        self.address = kernel.map_shared(descriptor, nbytes, alignment)
        # Not at exit: arrays may outlive the finalizers then, and the process ends anyway.
        weakref.finalize(self, kernel.unmap, self.address, nbytes).atexit = False


class Segment(Mapping):
    """A segment that this process created or attached.

    Attributes:
        locator: How others find it.
        descriptor: Of the file, in the process that created it; -1 elsewhere.
    """

    def __init__(self, locator: Locator, descriptor: int, keep_open: bool) -> None:
        """Maps a file, and closes it unless others must find it through this process."""
        self.locator = locator
        self.descriptor = descriptor if keep_open else -1
        try:
            super().__init__(descriptor, locator.nbytes)
        except OSError:
            os.close(descriptor)
            raise
        if keep_open:
            weakref.finalize(self, os.close, descriptor).atexit = False
        else:
            os.close(descriptor)

    def unlink(self) -> None:
        """Remove the file's name, if it has one; no process finds the segment from then on."""
        if self.locator.backing == "shm":
            with contextlib.suppress(FileNotFoundError):
                Path(self.locator.path).unlink()


def check_wanted(backing: Backing) -> None:
    """Raises OSError where HBMCOMM_SHM names a folder, and this backing is no file in it."""
    if backing == "memfd" and shm_folder.named():
        raise OSError(errno.EOPNOTSUPP, f"{shm_folder.VARIABLE} is set")


def create(backing: Backing, nbytes: int) -> Segment:
    """A new segment that holds no memory yet.

    Raises:
        OSError: This backing does not work here; with ENOMEM or EFBIG, not at that length.
        HbmcommError: The folder that HBMCOMM_SHM names cannot be used.
    """
    check_wanted(backing)
    name = f"hbmcomm.{secrets.token_hex(_RANDOM_BYTES)}"
    if backing == "memfd":
        descriptor = kernel.memory_file(name, nbytes)
        path = f"/proc/{os.getpid()}/fd/{descriptor}"
    else:
        path = str(shm_folder.current() / name)
        descriptor = _named_file(name)
        try:
            os.ftruncate(descriptor, nbytes)
        except OSError:
            os.close(descriptor)
            Path(path).unlink()
            raise
    state = os.fstat(descriptor)
    locator = Locator(backing, path, state.st_dev, state.st_ino, name, nbytes)
    try:
        return Segment(locator, descriptor, keep_open=True)
    except OSError:
        if backing == "shm":
            Path(path).unlink()
        raise


def _named_file(name: str) -> int:
    """The descriptor of a new file in the folder in use."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with shm_folder.opened() as folder:
        try:
            return os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            if shm_folder.named():
                raise shm_folder.refused(f"no file can be made there ({error.strerror})") from None
            raise


def attach(locator: Locator) -> Segment:
    """Another process's segment.

    A file is looked for in this process's own folder, which may have another path than there.

    Raises:
        OSError: It cannot be opened or mapped from here, or another file is at that path.
        HbmcommError: The folder that HBMCOMM_SHM names cannot be used.
    """
    _check_form(locator)
    if locator.backing == "memfd":
        descriptor = _opened(locator, locator.path, None)
    else:
        with shm_folder.opened() as folder:
            descriptor = _opened(locator, locator.name, folder)
    try:
        _check_identity(descriptor, locator)
        _check_length(descriptor, locator)
    except OSError:
        os.close(descriptor)
        raise
    return Segment(locator, descriptor, keep_open=False)


def _opened(locator: Locator, path: str, folder: int | None) -> int:
    """A descriptor for reading and writing of the file of a locator, once it is checked."""
    # A name in a folder may be a link; one in /proc always is.
    follow = 0 if folder is None else os.O_NOFOLLOW
    try:
        # O_PATH does not open the file: opening a device or a FIFO would have side effects.
        seen = os.open(path, _O_PATH | os.O_CLOEXEC | follow, dir_fd=folder)
    except FileNotFoundError as error:
        if folder is None:
            raise
        raise FileNotFoundError(
            f"its file {locator.path} is not in {shm_folder.current()} here; mount one folder for "
            f"both ranks, and name it by {shm_folder.VARIABLE}"
        ) from error
    try:
        _check_identity(seen, locator)
        # /proc/self/fd is the file that was checked, even if its path is another file by now.
        same = f"/proc/self/fd/{seen}" if folder is None else path
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | follow
        return os.open(same, flags, dir_fd=folder)
    finally:
        os.close(seen)


def free_bytes(backing: Backing) -> int | None:
    """Bytes that segments of this backing can still hold; None: as many as there is memory."""
    return None if backing == "memfd" else shm_folder.free_bytes()


def populate(address: int, nbytes: int, huge: bool) -> None:
    """Put memory under whole pages of a segment.

    Args:
        huge: Use huge pages where the kernel has them. Not for interleaved memory: the kernel
            would put each huge page on one node.

    Raises:
        OSError: Memory is short.
    """
    if huge:
        kernel.advise_huge_pages(address, nbytes)
    kernel.populate(address, nbytes)
    if huge:
        kernel.collapse(address, nbytes)


def _check_form(locator: Locator) -> None:
    """A locator comes from another process: `create` must be able to produce its path."""
    paths = {"memfd": r"/proc/\d+/fd/\d+", "shm": rf"/(.*/)?{re.escape(locator.name)}"}
    if (
        not re.fullmatch(paths.get(locator.backing, "(?!)"), locator.path)
        or not re.fullmatch(rf"hbmcomm\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}", locator.name)
        or not 0 < locator.nbytes < 2**62
        or locator.nbytes % HUGE_PAGE
    ):
        raise FileNotFoundError(f"{locator.path!r} is not a segment of hbmcomm")


def _check_identity(descriptor: int, locator: Locator) -> None:
    state = os.fstat(descriptor)
    right = stat.S_ISREG(state.st_mode) and (state.st_dev, state.st_ino) == locator.identity[:2]
    if right and state.st_uid != os.geteuid():  # root could open it
        raise PermissionError(f"{locator.path} belongs to user {state.st_uid}, not {os.geteuid()}")
    if right and locator.backing == "memfd":  # a file in a folder was opened by its name
        link = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 (not a path of the file system)
        right = link == f"/memfd:{locator.name} (deleted)"
    if not right:
        raise FileNotFoundError(f"{locator.path} is another file here")


def _check_length(descriptor: int, locator: Locator) -> None:
    length = os.fstat(descriptor).st_size
    if length != locator.nbytes:
        raise FileNotFoundError(f"{locator.path} has {length:,} bytes, not {locator.nbytes:,}")
    if locator.backing == "memfd" and not kernel.has_final_length(descriptor):
        raise FileNotFoundError(f"{locator.path} could be cut short by any process")
