"""Weights of a parameter server on real ranks, its errors, and a rank that dies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RANKS = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


def test_every_design_has_the_bits_of_the_serial_optimiser(mpirun: Callable[..., Any]) -> None:
    assert mpirun(RANKS / "steps.py", 4).output.count("all steps are right") == 1


def test_owners_and_workers_learn_of_a_dead_worker(
    mpirun: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "seen"
    folder.mkdir()
    found = mpirun(RANKS / "dies.py", 4, str(folder), code=None, survivors=True)
    seen = {path.name: path.read_text() for path in folder.iterdir()}
    assert sorted(seen) == ["0", "1", "2"], f"{seen}\n{found.output}"
    assert all("rank 3 died" in words for words in seen.values()), seen
