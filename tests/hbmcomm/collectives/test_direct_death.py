"""A rank that dies in the middle of a collective is an error on all others, at once.

By hand, 200 deaths under one MPI after the other:
    HBMCOMM_DEATHS=200 .venv/bin/pytest tests/hbmcomm/collectives/test_direct_death.py
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments import leftovers
from experiments.environments.mpiexec import FLAVOURS

PROGRAM = Path(__file__).parents[1] / "ranks" / "direct_death.py"
DEATHS = int(os.environ.get("HBMCOMM_DEATHS", "9"))
LATEST = 2.0  # seconds from the death to the error

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("seed", range(DEATHS))
def test_survivors_learn_of_a_death_and_nothing_stays_behind(
    mpirun: Callable[..., Any], tmp_path: Path, seed: int
) -> None:
    mpi, ranks = FLAVOURS[seed % len(FLAVOURS)], 2 + seed // len(FLAVOURS) % 3
    before, segments = _shared_files(), leftovers.segments()
    folder = tmp_path / "seen"
    folder.mkdir()
    try:
        found = mpirun(
            *(PROGRAM, ranks, "direct", str(seed), str(folder)),
            mpi=mpi,
            code=None,
            survivors=True,
        )
    finally:
        leftovers.remove_segments(segments)  # the launcher may say that all went well
    seen = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("rank*")}
    assert len(seen) == ranks - 1, f"{seen}\n{found.output}"
    for rank, words in seen.items():
        told = re.match(r"PeerError after ([0-9.]+) s", words)
        assert told, f"{rank}: {words}\n{found.output}"
        assert float(told[1]) < LATEST, f"{rank}: {words}"
    assert _shared_files() <= before


def _shared_files() -> set[Path]:
    """Those that are no MPI's."""
    return set(leftovers.SHM.iterdir()) - leftovers.segments()
