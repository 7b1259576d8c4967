"""Opens files that someone else may have made: plain ones alone, and to read, of a bounded size."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from experiments.model.errors import ExperimentsError

NO_WAIT = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""The flags of an open() that does not wait for the writer of a pipe."""
WRITING = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
UNUSUAL = (errno.ENXIO, errno.ELOOP, errno.EISDIR)
"""What open() fails with at a pipe without a reader or a socket, a link, and a folder."""


@contextlib.contextmanager
def opened(path: Path, follow: bool = False) -> Iterator[BinaryIO]:
    """A file to read from.

    Args:
        follow: whether the path may be a link: one of the user's own.

    Raises:
        ValueError: it is a link, a device, a pipe or a folder.
        OSError: it cannot be opened.
    """
    if path.is_symlink() and not follow:
        raise ValueError("it is a link, and not a plain file")
    try:
        descriptor = os.open(path, NO_WAIT | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.ELOOP):  # a socket; a link since
            raise
        raise ValueError("it is not a plain file") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a plain file")
        yield file


def read(path: Path, most: int, follow: bool = False, cut: bool = False) -> bytes:
    """A file's bytes.

    Args:
        most: bytes that it may have.
        follow: whether the path may be a link: one of the user's own.
        cut: whether a file of more bytes is read from its last `most` on, and not refused.

    Raises:
        ValueError: it is a link, a device, a pipe or a folder, or has more bytes.
        OSError: it cannot be read.
    """
    with opened(path, follow) as file:
        size = os.fstat(file.fileno()).st_size
        if cut:
            file.seek(max(0, size - most))
            return file.read(most)
        content = file.read(most + 1) if size <= most else None
    if content is None or len(content) > most:
        raise ValueError(f"it has more than {most} bytes")
    return content


@contextlib.contextmanager
def written(path: Path, append: bool = False) -> Iterator[BinaryIO]:
    """A file to write into, made where it is missing, and emptied else.

    Args:
        append: whether what is written follows what it holds.

    Raises:
        ExperimentsError: it is a link, a device, a pipe or a folder.
        OSError: it cannot be opened.
    """
    unusual = ExperimentsError(
        f"{path} is no plain file, and is not written into; see how it came there, and remove it"
    )
    try:
        descriptor = os.open(path, WRITING | (os.O_APPEND if append else 0), 0o666)
    except OSError as error:
        if error.errno not in UNUSUAL:
            raise
        raise unusual from error
    with os.fdopen(descriptor, "wb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise unusual
        if not append:
            os.ftruncate(descriptor, 0)
        yield file
