"""The end of a log, as error messages repeat it."""

from pathlib import Path


def last_lines(log: Path, count: int) -> list[str]:
    """Up to so many lines, the last of which is not blank; none where there is no log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.strip().splitlines()[-count:]
