"""Reads files that someone else may have made: nothing but a plain file of a bounded size."""

import os
import stat
from pathlib import Path

NO_WAIT = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
"""The flags of an open() that does not wait for the writer of a pipe."""


def read(path: Path, most: int, follow: bool = False) -> bytes:
    """A file's bytes.

    Args:
        most: bytes that it may have.
        follow: whether the path may be a link: one of the user's own.

    Raises:
        ValueError: it is a link, a device, a pipe or a folder, or has more bytes.
        OSError: it cannot be read.
    """
    if path.is_symlink() and not follow:
        raise ValueError("it is a link, and not a plain file")
    with os.fdopen(os.open(path, NO_WAIT | (0 if follow else os.O_NOFOLLOW)), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise ValueError("it is not a plain file")
        content = file.read(most + 1) if state.st_size <= most else None
    if content is None or len(content) > most:
        raise ValueError(f"it has more than {most} bytes")
    return content
