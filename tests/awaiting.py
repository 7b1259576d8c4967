"""Waiting for what other processes do, and looking whether they run."""

import time
from collections.abc import Callable
from pathlib import Path

POLL = 0.05  # seconds


def wait_for(condition: Callable[[], object], what: str, patience: float = 120.0) -> None:
    """Wait until the condition holds; fail the test after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {patience:.0f} s"
        time.sleep(POLL)


def seconds_until(condition: Callable[[], object], patience: float) -> float:
    """How long it takes until the condition holds; at most `patience`."""
    began = time.monotonic()
    while not condition() and time.monotonic() - began < patience:
        time.sleep(POLL)
    return time.monotonic() - began


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
