"""A rank that dies is an error on all others, on its host and on others."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.processes import tracking

HERE = Path(__file__).parent / "ranks"
DEATH = HERE.parents[1] / "ranks" / "direct_death.py"
HOSTS = "0,1,0,2,1"
LATEST = 2.0  # seconds from the death to the error, once all that are left are in calls
WORDS = r"PeerError at ([0-9.]+) and ([0-9.]+), in calls since ([0-9.]+)"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(("mpi", "seed"), [("openmpi", 1), ("mpich", 2)])
def test_survivors_learn_of_each_death_on_whatever_host(
    mpirun: Callable[..., Any], tmp_path: Path, mpi: str, seed: int
) -> None:
    segments = tracking.segments()
    folder = tmp_path / "seen"
    folder.mkdir()
    program = ("5", HOSTS, str(DEATH), "hierarchical", str(seed), str(folder))
    try:
        found = mpirun(
            HERE / "on_hosts.py", int(program[0]), *program[1:], mpi=mpi, code=None, survivors=True
        )
    finally:
        tracking.remove_segments(segments)
    for number in range(4):
        seen = {path.name: path.read_text("utf-8") for path in folder.glob(f"round{number}-*")}
        assert len(seen) == 4 - number, f"round {number}: {seen}\n{found.output}"
        noticed = [re.match(WORDS, words) for words in seen.values()]
        assert all(noticed), f"round {number}: {seen}\n{found.output}"
        moments = [[float(moment) for moment in each.groups()] for each in noticed if each]
        death = float((folder / f"moment{number}").read_text("ascii"))
        begin = max(death, *(ready for *_, ready in moments))
        for first, again, _ in moments:
            assert max(first - begin, again - first) < LATEST, f"round {number}: {begin}, {seen}"
