"""A rank on a node ends with its launch, wherever it then is."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.awaiting import alive, wait_for

PROGRAM = """
import sys, time
from pathlib import Path
from experiments.programs import on_a_node
on_a_node.LOOK = 0.01
on_a_node.end_without(Path(sys.argv[1]))
print("watched", flush=True)
time.sleep(60)
"""


def watched(file: Path) -> "subprocess.Popen[bytes]":
    """A rank that ends with a file."""
    rank = subprocess.Popen([sys.executable, "-c", PROGRAM, str(file)], stdout=subprocess.PIPE)
    assert rank.stdout and rank.stdout.readline() == b"watched\n"
    return rank


def test_a_rank_ends_once_its_launch_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "launch.json"
    file.touch()
    with watched(file) as rank:
        with pytest.raises(subprocess.TimeoutExpired):
            rank.wait(0.3)
        file.unlink()
        assert rank.wait(20) == -signal.SIGKILL


def test_what_watches_a_rank_ends_with_it(tmp_path: Path) -> None:
    with watched(tmp_path) as rank:
        (child,) = Path(f"/proc/{rank.pid}/task/{rank.pid}/children").read_text().split()
        rank.kill()
        assert rank.stdout.read() == b""  # the child holds no end of the pipe
    wait_for(lambda: not alive(int(child)), "end of the child", 20)
