"""Hashes that change with the names and contents of files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

CHUNK = 2**20  # bytes: wheels can be large


def digest(words: bytes, files: Iterable[tuple[str, Path]]) -> str:
    """SHA-256 in hex digits.

    Args:
        words: what else it changes with.
        files: each with its name.
    """
    found = hashlib.sha256(words)
    for name, path in files:
        found.update(f"\0{name}\0".encode())
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                found.update(chunk)
    return found.hexdigest()


def of_python(folder: Path) -> str:
    """The first 16 hex digits of SHA-256 of a package's Python files, names included."""
    every = sorted(folder.rglob("*.py"))
    return digest(b"", ((str(path.relative_to(folder)), path) for path in every))[:16]
