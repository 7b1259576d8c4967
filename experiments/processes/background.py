"""Processes in a session of their own: Ctrl-C reaches the driver, which then ends them."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

Process = subprocess.Popen[bytes]


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
