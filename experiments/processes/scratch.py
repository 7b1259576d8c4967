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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.model.errors import ExperimentsError
from experiments.processes import folder_lock, tracking

SHORT = Path("/tmp")
"""For folders with sockets: a socket's path has 107 letters at most, and TMPDIR can be long."""
FORGOTTEN = 24 * 3600.0  # seconds after which a maker on another boot or namespace is gone
PRIVATE = 0o600  # of a lock file: another user who can open one can hold its lock
QUIET, PATIENCE = 2.0, 1800.0
"""Seconds of waiting for a lock until a line says so, and until it fails: a build takes minutes."""
POLL = 0.02  # seconds


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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
def locked(folder: Path, name: str = ".lock", say: Callable[[str], None] = _say) -> Iterator[int]:
    """Keep other processes from making something in the folder at the same time.

    Args:
        say: takes a line when another process keeps this one waiting.

    Returns:
        The lock's descriptor: a process that inherits it holds the lock as well.

    Raises:
        ExperimentsError: the lock is another user's, or another process holds it for too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    path = folder / name
    try:
        lock = os.open(path, flags, PRIVATE)
    except PermissionError as error:
        raise ExperimentsError(
            f"{path} cannot be opened ({error.strerror}), and keeps two processes from making the "
            f"same there: run the command as the owner of {folder}"
        ) from error
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            os.fchmod(lock, PRIVATE)  # an older version left it readable
        _wait(lock, path, say)
        yield lock
    finally:
        os.close(lock)


def _wait(lock: int, path: Path, say: Callable[[str], None]) -> None:
    """Wait until this process holds a lock."""
    began, announced = time.monotonic(), False
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        waited = time.monotonic() - began
        if waited > PATIENCE:
            raise ExperimentsError(
                f"another process has held {path} for {waited / 60:.0f} minutes; see which "
                f"(fuser -v {path}), end it if it hangs, and try again"
            )
        if waited > QUIET and not announced:
            say(f"waiting for a process that makes something in {path.parent}: it holds {path}")
            announced = True
        time.sleep(POLL)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove this user's folders of makers that are gone."""
    for path in parent.glob(f"{prefix}*-*"):
        made_by = path.name.removeprefix(prefix).rpartition("-")[0]
        with contextlib.suppress(FileNotFoundError, ValueError):
            state = path.lstat()
            is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
            if is_own and is_gone(made_by, time.time() - state.st_mtime):
                remove(path)


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
