"""Processes that end with another one.

Those that a driver starts have a session of their own: Ctrl-C reaches the driver, which then ends
them.
"""

import ctypes
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

Process = subprocess.Popen[bytes]
PR_SET_PDEATHSIG = 1


def start(words: Sequence[str], log: Path, variables: Mapping[str, str]) -> Process:
    """Start a command; its output and its errors go to `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(
            words,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def end(process: Process, patience: float) -> None:
    """End it by its PID: SIGTERM, and SIGKILL once it has had so many seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def die_with_parent() -> None:
    """Have the kernel end this process when its parent ends, also after an exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
