"""Counts the processes that use an engine which a driver started; the last one ends it.

Each user holds a shared lock on one file, which the kernel releases at the end of the process.
Knows no engine.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK = Path("/run/hbmcomm-engine")
"""Stays, and is empty. Only root can write there: root alone starts engines, and in a folder that
all users can write, any of them could keep an engine from ending."""
STARTING = LOCK.with_name(f"{LOCK.name}.starting")
"""Locked by a process that looks for an engine and starts it, so that two do not start one each."""


@contextlib.contextmanager
def counted(end: Callable[[], None], lock: Path = LOCK) -> Iterator[None]:
    """Be a user for the time of the block; then call `end` if there is no other user."""
    with _opened(lock) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if descriptor is not None and _alone(descriptor):
                end()


def in_use(lock: Path = LOCK) -> bool:
    """Whether the engine has a user now."""
    with _opened(lock) as descriptor:
        return descriptor is not None and not _alone(descriptor)


@contextlib.contextmanager
def starting(lock: Path = STARTING) -> Iterator[None]:
    """Keep other processes from starting an engine; waits for one that does."""
    with _opened(lock) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _opened(lock: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _alone(descriptor: int) -> bool:
    """Try to upgrade to an exclusive lock; succeeds for the last holder."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
