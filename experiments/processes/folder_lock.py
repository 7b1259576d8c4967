"""The lock on a results folder: one driver at a time. Its file notes what that driver began.

A driver and its watchdog hold the same open file, so the lock of a killed driver lasts until its
watchdog has cleaned up. Cleans nothing itself.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from experiments.model.errors import ExperimentsError
from experiments.processes import ownership, tracking

NAME = ".driver"  # of the lock file in a results folder
MODE = 0o755  # of a results folder, whatever the umask: nobody else writes there
PATIENCE = 120.0  # seconds that a watchdog may take: an engine alone gets 30 to end
NOTE_PATIENCE = 1.0  # seconds between a driver's lock and its first note
POLL = 0.05  # seconds
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of a file system without locks

Facts = dict[str, Any]
MOST = 16 * 2**20  # bytes of the notes
PROCESS = r"[0-9]{1,10}\.[0-9]{1,20}"
FORMS = {"driver": PROCESS, "mark": rf"{PROCESS}\.[0-9a-f]+"}
"""What notes that processes are found by look like; one of another form is left out, and so are a
label of containers that was made for another folder, and the engines that have them."""
TEXTS, LISTS = ("place", "host"), ("segments", "engines")
"""Notes that are a line of text, and lists of texts; with another type the file is refused."""
NEEDED = ("place", "host", "segments")
"""What each driver notes."""


class FolderLock:
    """A results folder's lock, held until it is released, by every process that inherits it.

    Attributes:
        descriptor: of the open lock file; other programs get it by pass_fds only.
    """

    def __init__(self, folder: Path, descriptor: int, made: bool = False) -> None:
        self.descriptor = descriptor
        self._folder, self._made = folder, made

    def facts(self) -> Facts:
        """The holders' notes. Not empty in a new lock if a driver and its watchdog were killed.

        Later lines replace earlier ones; one that a kill cut short is left out. Notes without a
        driver are none. A copy of the file has another inode, which is left out: others may have
        written what it says of this machine.

        Raises:
            ExperimentsError: the file holds what no driver notes; names the field.
        """
        notes = self._notes()
        wrong = {key for key in FORMS if not re.fullmatch(FORMS[key], _text(notes, key))}
        if "driver" in wrong:
            return {}
        if not _text(notes, "campaign").endswith(f"-{ownership.digest_of(self._folder)}"):
            wrong |= {"campaign", "engines"}
        if notes.get("inode") != self.inode:
            wrong.add("inode")
        return {key: value for key, value in notes.items() if key not in wrong}

    @property
    def inode(self) -> int:
        """The inode of the lock file, which a driver notes."""
        return os.fstat(self.descriptor).st_ino

    def refuse(self, fault: str) -> NoReturn:
        """Refuse the file's notes."""
        raise ExperimentsError(
            f"{self._folder / NAME} holds what no driver notes ({fault}), so nothing was ended or "
            "removed: see how the file came there, and remove it, or name another --out"
        )

    def _notes(self) -> Facts:
        """All notes, with the types of TEXTS and LISTS."""
        size = os.fstat(self.descriptor).st_size
        if size > MOST:
            self.refuse(f"it has {size} bytes, and {MOST} at most are read")
        notes: Facts = {}
        for line in os.pread(self.descriptor, size, 0).splitlines():
            try:
                values = json.loads(line)
            except RecursionError:
                self.refuse("it holds lists within each other without end")
            except ValueError:
                continue
            if not isinstance(values, dict):
                self.refuse("a line holds no JSON object")
            notes |= values
        for key in TEXTS:
            if not isinstance(notes.get(key, ""), str) or not _text(notes, key).isprintable():
                self.refuse(f"{key} must be a line of text")
        for key in LISTS:
            texts = notes.get(key, [])
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                self.refuse(f"{key} must be a list of texts")
        return notes

    def note(self, **facts: Any) -> None:
        """Add facts of types that JSON has; a later value of a name replaces an earlier one."""
        os.write(self.descriptor, (json.dumps(facts) + "\n").encode())

    def forget(self) -> None:
        """Remove all notes."""
        os.ftruncate(self.descriptor, 0)

    def release(self) -> None:
        """Unlock the folder; remove it if it was made for this lock and is empty."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / NAME).unlink()
        os.close(self.descriptor)
        if self._made:
            with contextlib.suppress(OSError):
                self._folder.rmdir()


def take(folder: Path, say: Callable[[str], None]) -> FolderLock:
    """Lock a results folder, made if it is missing; waits for the watchdog of a killed driver.

    Raises:
        ExperimentsError: naming the other driver and what to do; the folder or the lock is
            another user's, or the lock holds what no driver notes.
    """
    made = not folder.exists()
    folder.mkdir(MODE, parents=True, exist_ok=True)
    ownership.refuse_others(folder)
    path, began, announced = folder / NAME, time.monotonic(), False
    while True:
        descriptor = ownership.open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        lock = FolderLock(folder, descriptor, made)
        try:
            facts = lock.facts()
            if lacking := [key for key in NEEDED if facts and key not in facts]:
                lock.refuse(f"it lacks {lacking[0]}")
        except ExperimentsError:
            os.close(descriptor)
            raise
        if _lock(descriptor) and _leads_to(path, descriptor) and not _alive(facts):
            return lock
        os.close(descriptor)
        _refuse(folder, facts, time.monotonic() - began)
        if facts and not announced:
            say(f"waiting until what a killed driver left of {folder} is cleared away")
            announced = True
        time.sleep(POLL)


def pid_namespace() -> str:
    """Identity of this boot and PID namespace, within which PIDs can be compared."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _text(notes: Facts, key: str) -> str:
    """A note that is text; "" for another one."""
    value = notes.get(key)
    return value if isinstance(value, str) else ""


def _alive(facts: Facts) -> bool:
    """Whether the driver that noted these facts runs; for file systems without locks."""
    return bool(facts) and facts["place"] == pid_namespace() and tracking.lives(facts["driver"])


def _refuse(folder: Path, facts: Facts, waited: float) -> None:
    """Fail where waiting does not help."""
    if not facts:
        if waited > NOTE_PATIENCE:
            raise ExperimentsError(f"{folder} is locked ({folder / NAME}); name another --out")
        return
    pid = facts["driver"].partition(".")[0]
    if facts["place"] != pid_namespace():
        raise ExperimentsError(
            f"a driver on another machine or in a container ({facts['host']}, process {pid}) "
            f"measures into {folder}; let it finish, or name another --out"
        )
    if _alive(facts):
        raise ExperimentsError(
            f"another driver (process {pid}) measures into {folder}; let it finish or end it "
            f"(kill {pid}), or name another --out"
        )
    if waited > PATIENCE:
        raise ExperimentsError(
            f"what a killed driver (process {pid}) left of {folder} is not cleared away after "
            f"{PATIENCE:.0f} s; see that the container engine answers (./inv doctor), try again"
        )


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in NO_LOCKS:
            raise
    return True


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path still names the open file, which its former holder may have removed."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
