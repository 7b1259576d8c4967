"""Finds, starts and ends programs, and sets for them what they inherit from this process.

Those in the background have a session of their own.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.model import plain_file

Ended = subprocess.CompletedProcess[str]


def captured(words: Sequence[str | Path], **how: Any) -> Ended:
    """Run a command, whatever its exit code; output and errors are kept apart.

    Args:
        how: further arguments of subprocess.run.
    """
    return subprocess.run(words, capture_output=True, text=True, check=False, **how)


Process = subprocess.Popen[bytes]
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
KILLED = 10.0  # seconds until a process that was killed is gone


def start(words: Sequence[str], log: Path, variables: Mapping[str, str]) -> Process:
    """Start a command; its output and its errors go to `log`.

    Raises:
        ExperimentsError: `log` is no plain file.
    """
    with plain_file.written(log) as output:
        return subprocess.Popen(
            words,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: Process, patience: float, send: Callable[[int, int], None] = os.kill) -> None:
    """SIGTERM, and SIGKILL once it has had so many seconds; by `os.killpg` to its whole group."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILLED)):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            send(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, also after an exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def adopting_orphans(wanted: bool = True) -> Iterator[None]:
    """Become the parent of what processes below this one leave, for the time of the block.

    Args:
        wanted: False for a block in which the machine's first process becomes it, as usual.
    """
    before, prctl = ctypes.c_int(), ctypes.CDLL(None).prctl
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    prctl(PR_SET_CHILD_SUBREAPER, int(wanted))
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value)


@contextlib.contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for the time of the block."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def open_as_many_files_as_allowed() -> None:
    """Raise this process's own limit: a line to each rank takes a descriptor."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))


ADMINISTRATION = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def find(name: str) -> str | None:
    """The program's path, or None where it is not installed."""
    return shutil.which(name, path=path())


def path() -> str:
    """PATH with those folders."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *ADMINISTRATION))
