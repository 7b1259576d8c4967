"""The queue of a process group under ThreadSanitizer; needs no torch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.model.checkout import ROOT

SHIM = ROOT / "hbmcomm/torch/shim"


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler: apt-get install g++")
def test_operations_run_one_at_a_time_and_in_order(tmp_path: Path) -> None:
    program = tmp_path / "queue"
    sources = [str(SHIM / "queue.cpp"), str(Path(__file__).with_name("queue.cpp"))]
    words = ["c++", "-std=c++17", "-O1", "-g", "-Wall", "-Werror", "-fsanitize=thread", "-pthread"]
    subprocess.run([*words, f"-I{SHIM}", *sources, "-o", str(program)], check=True)
    done = subprocess.run(
        [str(program)],
        env=os.environ | {"TSAN_OPTIONS": "halt_on_error=1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "8000 done, 0 wrong, order 12ab3\n"
