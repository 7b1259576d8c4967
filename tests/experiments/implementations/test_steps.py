"""Steps of training and decoding leave what one process, or MPI, computes."""

import importlib.util
from pathlib import Path

import pytest

from tests.starting import Start

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None,
        reason="torch is not installed: pip install torch ninja",
    ),
]

PROGRAM = Path(__file__).parent / "ranks" / "steps.py"


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.rare)])
def test_every_workload_is_right_on_every_group(mpirun: Start, tmp_path: Path, ranks: int) -> None:
    assert mpirun(PROGRAM, ranks, str(tmp_path)).output.split().count("right") == ranks
