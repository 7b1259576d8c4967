"""Files that are written whole or not at all, also in a folder that another user can write into.

The temporary file has a name that nobody can guess, is made anew and is written through its
descriptor: a link that another user puts in its place leads nowhere.
"""

import contextlib
import os
from collections.abc import Iterator
from io import BufferedRandom
from pathlib import Path

FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def whole_file(path: Path, mode: int = 0o666) -> Iterator[BufferedRandom]:
    """A temporary neighbour of `path` to write into; it replaces `path` at the end of the block.

    Where the block raises, `path` stays as it was and the neighbour is removed.

    Args:
        mode: of the file, less the umask.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(temporary, FLAGS, mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
