"""Temporary folders that outlive a killed maker, until the next one removes them.

A folder's name says who made it. Knows nothing of what is made in it.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.processes import folder_lock, tracking

SHORT = Path("/tmp")
"""For folders with sockets in them, whose paths have 107 letters at most, wherever TMPDIR is."""
FORGOTTEN = 24 * 3600.0  # seconds after which a maker is gone who cannot be asked: another boot's


@contextlib.contextmanager
def folder(parent: Path, prefix: str) -> Iterator[Path]:
    """An empty folder for as long as the block lasts; what killed makers left is removed first.

    Args:
        prefix: begins the names of all folders made for this purpose.
    """
    remove_abandoned(parent, prefix)
    place = Path(tempfile.mkdtemp(prefix=f"{prefix}{maker()}-", dir=parent))
    try:
        yield place
    finally:
        remove(place)


def settle(made: Path, name: Path) -> None:
    """Give a whole folder its name, unless another process was quicker with the same one."""
    try:
        made.rename(name)
    except OSError:
        if not name.is_dir():
            raise


def remove_superseded(folder: Path, place: Path) -> None:
    """Remove the folders whose names are this one's up to its last dash: what older inputs made.

    They lose their names first: half of one must not be taken for the whole.

    Args:
        place: a temporary folder on the same file system, which goes after this.
    """
    for other in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
        if other != folder:
            with contextlib.suppress(FileNotFoundError):  # another process was quicker
                other.rename(place / other.name)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other process makes something in the folder meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders whose makers are gone."""
    for place in parent.glob(f"{prefix}*-*"):
        who = place.name.removeprefix(prefix).rpartition("-")[0]
        with contextlib.suppress(FileNotFoundError, ValueError):
            if is_gone(who, time.time() - place.stat().st_mtime):
                remove(place)


def maker() -> str:
    """Who this process is, to those who come after it."""
    return f"{_here()}.{tracking.identity(os.getpid())}"


def is_gone(who: str, age: float = 0.0) -> bool:
    """Whether a maker no longer runs.

    Args:
        age: of what it made, in seconds, where that may decide.
    """
    where, _, identity = who.partition(".")
    return not tracking.lives(identity) if where == _here() else age > FORGOTTEN


def remove(place: Path) -> None:
    """Remove a folder, whatever a killed debootstrap has mounted in it."""
    for point in mounted_below(place, Path("/proc/self/mountinfo").read_text(encoding="utf-8")):
        subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)
    if not mounted_below(place, Path("/proc/self/mountinfo").read_text(encoding="utf-8")):
        shutil.rmtree(place, ignore_errors=True)  # a maker's orphan may still write there


def mounted_below(place: Path, mountinfo: str) -> list[str]:
    """Mount points in a folder, the innermost first, as proc(5) mountinfo tells them. Pure."""
    points = [line.split()[4] for line in mountinfo.splitlines()]
    return sorted((point for point in points if point.startswith(f"{place}/")), reverse=True)


def _here() -> str:
    """A short name of this boot and process namespace."""
    return hashlib.sha256(folder_lock.place().encode()).hexdigest()[:8]
