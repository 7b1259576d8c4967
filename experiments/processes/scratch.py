"""Temporary folders. The folder of a killed process is removed by the next one that makes one.

A folder's name holds the identity of its maker. Knows nothing of the folders' content.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from experiments.processes import folder_lock, tracking

SHORT = Path("/tmp")
"""For folders with sockets: a socket's path has 107 letters at most, and TMPDIR can be long."""
FORGOTTEN = 24 * 3600.0  # seconds after which a maker on another boot or namespace is gone


@contextlib.contextmanager
def folder(parent: Path, prefix: str) -> Iterator[Path]:
    """An empty folder for the time of the block; folders of killed processes are removed first.

    Args:
        prefix: of the names of all folders made for this purpose.
    """
    remove_abandoned(parent, prefix)
    made = Path(tempfile.mkdtemp(prefix=f"{prefix}{maker()}-", dir=parent))
    try:
        yield made
    finally:
        remove(made)


def settle(made: Path, name: Path) -> None:
    """Rename a complete folder, unless another process has already made one of that name."""
    try:
        made.rename(name)
    except OSError:
        if not name.is_dir():
            raise


def remove_superseded(folder: Path, bin: Path) -> None:
    """Remove folders of older inputs: with this one's name, except for what follows its last dash.

    They are renamed first, so that a half removed one is not taken for a complete one.

    Args:
        bin: a temporary folder on the same file system, which the caller removes.
    """
    for other in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
        if other != folder:
            with contextlib.suppress(FileNotFoundError):  # another process did it
                other.rename(bin / other.name)


@contextlib.contextmanager
def locked(folder: Path, name: str = ".lock") -> Iterator[int]:
    """Keep other processes from making something in the folder at the same time.

    Returns:
        The lock's descriptor: a process that inherits it holds the lock as well.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(folder / name, flags, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove this user's folders of makers that are gone."""
    for found in parent.glob(f"{prefix}*-*"):
        made_by = found.name.removeprefix(prefix).rpartition("-")[0]
        with contextlib.suppress(FileNotFoundError, ValueError):
            state = found.lstat()
            is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
            if is_own and is_gone(made_by, time.time() - state.st_mtime):
                remove(found)


def maker() -> str:
    """Identity of this process across boots and PID namespaces: "NAMESPACE.PID.START"."""
    return f"{_namespace()}.{tracking.identity(os.getpid())}"


def is_gone(maker: str, age: float = 0.0) -> bool:
    """Whether a maker no longer runs.

    Args:
        age: of what it made, in seconds; decides for a maker on another boot or namespace.
    """
    namespace, _, process = maker.partition(".")
    return not tracking.lives(process) if namespace == _namespace() else age > FORGOTTEN


def remove(folder: Path) -> None:
    """Remove a folder and what a killed mmdebstrap left mounted in it."""
    for point in mounted_below(folder, Path("/proc/self/mountinfo").read_text(encoding="utf-8")):
        subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)
    if not mounted_below(folder, Path("/proc/self/mountinfo").read_text(encoding="utf-8")):
        shutil.rmtree(folder, ignore_errors=True)  # a child of its maker may still write there


def mounted_below(folder: Path, mountinfo: str) -> list[str]:
    """Mount points in a folder, the innermost first, from the text of proc(5) mountinfo."""
    points = [line.split()[4] for line in mountinfo.splitlines()]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def _namespace() -> str:
    """A short hash of this boot and PID namespace."""
    return hashlib.sha256(folder_lock.pid_namespace().encode()).hexdigest()[:8]
