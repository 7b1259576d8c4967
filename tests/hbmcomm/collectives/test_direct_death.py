"""A rank that dies in the middle of a collective is an error on all others, at once.

By hand, 1,000 ranks killed, under one MPI after the other (25 minutes):
    HBMCOMM_KILLS=1000 .venv/bin/pytest tests/hbmcomm/collectives/test_direct_death.py
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.model.environment import MPIS
from experiments.processes import tracking

PROGRAM = Path(__file__).parent / "ranks" / "direct_death.py"
RANKS = 5
LAUNCHES = -(-int(os.environ.get("HBMCOMM_KILLS", "12")) // (RANKS - 2))
LATEST = 2.0  # seconds from the death to the error, once all that are left are in calls
WORDS = r"PeerError at ([0-9.]+) and ([0-9.]+), in calls since ([0-9.]+)"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("seed", range(LAUNCHES))
def test_survivors_learn_of_each_death_and_nothing_stays_behind(
    mpirun: Callable[..., Any], tmp_path: Path, seed: int
) -> None:
    before, segments = _shared_files(), tracking.segments()
    folder = tmp_path / "seen"
    folder.mkdir()
    try:
        found = mpirun(
            *(PROGRAM, RANKS, "direct", str(seed), str(folder)),
            mpi=MPIS[seed % len(MPIS)],
            code=None,
            survivors=True,
        )
    finally:
        tracking.remove_segments(segments)  # the launcher may say that all went well
    for number in range(RANKS - 1):
        seen = {path.name: path.read_text("utf-8") for path in folder.glob(f"round{number}-*")}
        assert len(seen) == RANKS - 1 - number, f"round {number}: {seen}\n{found.output}"
        noticed = [re.match(WORDS, words) for words in seen.values()]
        assert all(noticed), f"round {number}: {seen}\n{found.output}"
        moments = [[float(moment) for moment in each.groups()] for each in noticed if each]
        death = float((folder / f"moment{number}").read_text("ascii"))
        begin = max(death, *(ready for *_, ready in moments))
        for first, again, _ in moments:
            assert max(first - begin, again - first) < LATEST, f"round {number}: {begin}, {seen}"
    assert _shared_files() <= before


def _shared_files() -> set[Path]:
    """Those that are no MPI's."""
    return set(tracking.SHM.iterdir()) - tracking.segments()
