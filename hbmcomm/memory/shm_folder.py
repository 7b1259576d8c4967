"""The folder for files of shared memory: /dev/shm, or the one that HBMCOMM_SHM names.

A named folder serves ranks that share only a mount, such as containers with a common volume. It is
checked at each use: other users must not be able to replace its files, and its pages must be on the
nodes that a kind asks for.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hbmcomm.errors import HbmcommError
from hbmcomm.memory import kernel

VARIABLE = "HBMCOMM_SHM"
DEFAULT = Path("/dev/shm")
LARGEST_PAGE = 2 * 2**20
"""Segments are cut at multiples of this many bytes."""

# include/uapi/linux/magic.h
_TMPFS, _HUGETLBFS = 0x01021994, 0x958458F6
_REMEDY = "take a folder of your own on a tmpfs (mkdir -m 700 /dev/shm/NAME)"


def named() -> Path | None:
    """The folder that HBMCOMM_SHM names, unchecked; None where it is not set."""
    text = os.environ.get(VARIABLE, "").strip()
    return Path(text) if text else None


def current() -> Path:
    """The folder in use."""
    return named() or DEFAULT


@contextlib.contextmanager
def opened() -> Iterator[int]:
    """A descriptor of the folder in use, for calls with dir_fd; a named folder is checked.

    Raises:
        HbmcommError: The named folder cannot be used; the message has the reason.
        OSError: /dev/shm cannot be opened.
    """
    folder = named()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        descriptor = os.open(folder or DEFAULT, flags)
    except OSError as error:
        if folder is None:
            raise
        raise refused(f"it cannot be opened ({error.strerror})") from None
    try:
        if folder is not None:
            _check(folder, descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def refused(why: str) -> HbmcommError:
    """The error of a named folder that cannot be used."""
    return HbmcommError(f"{VARIABLE}={named()}: {why}; {_REMEDY}, or unset {VARIABLE}")


def free_bytes() -> int | None:
    """Bytes that the folder in use has left; None: as many as there is memory."""
    state = os.statvfs(current())
    return state.f_bavail * state.f_frsize if state.f_blocks else None  # 0: a mount without limit


def is_hugetlbfs(descriptor: int) -> bool:
    """Whether a file has huge pages that the system reserved, which are no free memory."""
    return kernel.file_system(descriptor)[0] == _HUGETLBFS


def _check(folder: Path, descriptor: int) -> None:
    if not folder.is_absolute():
        raise refused("it is no absolute path, and ranks may have different working folders")
    state, user = os.fstat(descriptor), os.geteuid()
    if state.st_uid not in (0, user):
        raise refused(
            f"it belongs to user {state.st_uid}, not to user {user} or root, and its owner could "
            "replace the files of ranks"
        )
    mode = stat.S_IMODE(state.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        raise refused(
            f"its mode {mode:o} lets other users replace the files of ranks (chmod 700 or 1777)"
        )
    try:
        magic, page = kernel.file_system(descriptor)
    except OSError as error:
        raise refused(f"its type of file system is not known ({error})") from None
    if magic not in (_TMPFS, _HUGETLBFS):
        raise refused(
            f"it is neither on a tmpfs nor on a hugetlbfs (type {magic:#x}), and only their pages "
            "can be put on chosen NUMA nodes"
        )
    if LARGEST_PAGE % page:
        raise refused(f"its pages have {page:,} bytes; mount a hugetlbfs with pagesize=2M")
