"""A results folder belongs to one driver at a time; its lock file says what that driver began.

The lock outlives a killed driver for as long as its guard cleans up: both hold the same open file.
Cleans nothing itself.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiments.model.errors import ExperimentsError
from experiments.processes import tracking

NAME = ".driver"  # of the lock file in a results folder
PATIENCE = 120.0  # seconds that a guard may take: an engine alone gets 30 to end
TELL_PATIENCE = 1.0  # seconds in which a driver has said who it is
POLL = 0.05  # seconds
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # a file system that knows none

Facts = dict[str, Any]


class FolderTaken(ExperimentsError):
    """Another driver measures into the folder, or the guard of a killed one does not come to an
    end."""


class Claim:
    """The lock on a results folder, held until it is released and by whoever inherits it.

    Attributes:
        descriptor: of the open lock file; closed in other programs unless it is passed on.
    """

    def __init__(self, folder: Path, descriptor: int, made: bool = False) -> None:
        self.descriptor = descriptor
        self._folder, self._made = folder, made

    def facts(self) -> Facts:
        """What holders have noted; empty in a new claim, unless they and their guards were
        killed."""
        return _facts(self.descriptor)

    def note(self, **facts: Any) -> None:
        """Add facts, as JSON holds them; one noted before gives way."""
        os.write(self.descriptor, (json.dumps(facts) + "\n").encode())

    def forget(self) -> None:
        """Nothing is noted any more."""
        os.ftruncate(self.descriptor, 0)

    def release(self) -> None:
        """Give the folder back; one that was made for this claim and holds nothing else goes."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / NAME).unlink()
        os.close(self.descriptor)
        if self._made:
            with contextlib.suppress(OSError):
                self._folder.rmdir()


def take(folder: Path, say: Callable[[str], None]) -> Claim:
    """Claim a results folder, made where it is missing; waits for the guard of a killed driver.

    Raises:
        FolderTaken: by whom, and what to do.
    """
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    path, began, told = folder / NAME, time.monotonic(), False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        facts = _facts(descriptor)
        if _lock(descriptor) and _leads_to(path, descriptor) and not _alive(facts):
            return Claim(folder, descriptor, made)
        os.close(descriptor)
        _refuse(folder, facts, time.monotonic() - began)
        if facts and not told:
            say(f"waiting until what a killed driver left of {folder} is cleared away")
            told = True
        time.sleep(POLL)


def place() -> str:
    """Where process numbers mean what they mean here: this boot, this namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _alive(facts: Facts) -> bool:
    """Whether the driver that noted these facts runs; a file system without locks tells no other
    way."""
    return bool(facts) and facts["place"] == place() and tracking.lives(facts["driver"])


def _refuse(folder: Path, facts: Facts, waited: float) -> None:
    """Fail where waiting does not help."""
    if not facts:
        if waited > TELL_PATIENCE:
            raise FolderTaken(f"{folder} is locked ({folder / NAME}); name another --out")
        return
    pid = facts["driver"].partition(".")[0]
    if facts["place"] != place():
        raise FolderTaken(
            f"a driver on another machine or in a container ({facts['host']}, process {pid}) "
            f"measures into {folder}; let it finish, or name another --out"
        )
    if _alive(facts):
        raise FolderTaken(
            f"another driver (process {pid}) measures into {folder}; let it finish or end it "
            f"(kill {pid}), or name another --out"
        )
    if waited > PATIENCE:
        raise FolderTaken(
            f"what a killed driver (process {pid}) left of {folder} is not cleared away after "
            f"{PATIENCE:.0f} s; see that the container engine answers (./inv doctor), try again"
        )


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return True
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still names the open file: who held it before has removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _facts(descriptor: int) -> Facts:
    """Everything noted, later lines over earlier; one cut short by a kill is left out."""
    found: Facts = {}
    for line in os.pread(descriptor, os.fstat(descriptor).st_size, 0).splitlines():
        with contextlib.suppress(ValueError):
            found |= json.loads(line)
    return found
