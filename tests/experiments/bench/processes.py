"""Benches in processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from experiments.results import store
from tests.awaiting import wait_for

ROOT = Path(__file__).parents[3]


def started(*words: str) -> "subprocess.Popen[str]":
    """Python with these words, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupted(
    process: "subprocess.Popen[str]", out: Path, count: int, number: signal.Signals, patience: float
) -> str:
    """What a bench prints that a signal ends once so many launches are finished."""
    try:
        wait_for(lambda: len(store.finished(out)) >= count, f"{count} finished launches", patience)
        os.killpg(process.pid, number)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "bench: interrupted" in errors
    assert "Traceback" not in errors
    assert not (out / "incoming").exists()
    return printed
