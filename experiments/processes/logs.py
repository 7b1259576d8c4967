"""What a process has written so far, as a whole or as error messages repeat it."""

import contextlib
from pathlib import Path

from experiments.model import plain_file

SMALL = 200  # bytes


def text(log: Path) -> str:
    """All of it; "" where there is no log."""
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
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
