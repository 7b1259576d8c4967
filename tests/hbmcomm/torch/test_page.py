"""The programs of docs/torch.md run unchanged."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_examples import blocks

PROGRAMS = [block.text for block in blocks() if block.needs == "torchrun"]

pytestmark = [pytest.mark.ranks]


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(n, marks=pytest.mark.rare) for n in range(1, len(PROGRAMS)))]
)
def test_every_program_runs_under_torchrun(number: int, built: None, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAMS[number])
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program)]
    done = subprocess.run(
        [sys.executable, *words],
        env=os.environ | {"DDP_DISABLE_COMM_MEM": "0", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("True") == 2, done.stdout


def test_the_page_has_programs() -> None:
    assert len(PROGRAMS) == 3
