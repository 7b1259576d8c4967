"""Files that are written whole or not at all, hashes of files, and the logs of processes."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from io import BufferedRandom
from pathlib import Path

from experiments.model import plain_file

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
    except OSError as error:
        if error.errno and not error.filename:  # a write knows a descriptor alone
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


CHUNK = 2**20  # bytes: wheels can be large


def digest(words: bytes, files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 in hex digits.

    Args:
        words: what else it changes with.
        files: each with its name.
    """
    hasher = hashlib.sha256(words)
    for name, path in files:
        hasher.update(f"\0{name}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                hasher.update(chunk)
    return hasher.hexdigest()


def of_python(folder: Path) -> str:
    """The first 16 hex digits of SHA-256 of a package's Python files, names included."""
    every = sorted(folder.rglob("*.py"))
    return digest(b"", ((str(path.relative_to(folder)), path) for path in every))[:16]


SMALL = 200  # bytes
MOST = 16 * 2**20
"""Bytes of a log that are read; a program may write without end."""


def text(log: Path) -> str:
    """All of it, or the last MOST bytes; "" where there is no plain file: nothing waits for one."""
    try:
        return plain_file.read(log, MOST, cut=True).decode("utf-8", "replace")
    except (FileNotFoundError, ValueError):
        return ""


def small_text(path: Path) -> str:
    """A line or two that ranks keep up to date; "" where something else is there."""
    with contextlib.suppress(OSError, ValueError):
        return plain_file.read(path, SMALL).decode("ascii")
    return ""


def last_lines(log: Path, count: int) -> list[str]:
    """Up to so many lines, the last of which is not blank; none where there is no log to read."""
    try:
        return text(log).strip().splitlines()[-count:]
    except OSError:
        return []
