"""What a process has written so far, as a whole or as error messages repeat it."""

import contextlib
from pathlib import Path

from experiments.model import plain_file

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
