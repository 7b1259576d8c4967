"""Who uses the engine that one of our drivers started: the last one to leave ends it.

Every user holds one lock file open and locked, shared; the kernel lets go of it with a process,
however that ends. Knows no engine.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK = Path("/run/hbmcomm-engine")
"""Stays, and is empty. Who may not write there is not counted: root alone starts engines, and in a
folder that all may write to, anybody could keep one from ending."""
STARTING = LOCK.with_name(f"{LOCK.name}.starting")
"""Held by who looks for an engine and starts it, so that two do not start one each."""


@contextlib.contextmanager
def counted(end: Callable[[], None], lock: Path = LOCK) -> Iterator[None]:
    """A user for as long as the block lasts; `end` is called if no other is left then."""
    with _opened(lock) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if descriptor is not None and _alone(descriptor):
                end()


def there_are(lock: Path = LOCK) -> bool:
    """Whether anybody is a user now."""
    with _opened(lock) as descriptor:
        return descriptor is not None and not _alone(descriptor)


@contextlib.contextmanager
def alone_in_starting(lock: Path = STARTING) -> Iterator[None]:
    """Wait until nobody else starts an engine; nobody does until the block ends."""
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
    """Whether nobody else holds the lock; then this descriptor does, against all who come."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
