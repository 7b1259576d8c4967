"""A rank that dies in the middle of a collective is an error on all others, at once.

By hand, 1,000 ranks killed, under one MPI after the other (25 minutes):
    HBMCOMM_KILLS=1000 .venv/bin/pytest tests/hbmcomm/transports/test_deaths.py
"""

import os
import re
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from experiments.processes import tracking
from tests.left import nothing_left
from tests.starting import Survivors

HERE = Path(__file__).parent
PROGRAM = HERE / "ranks" / "deaths.py"
RANKS = 5
ON_HOSTS = (HERE.parent / "hierarchical/ranks/on_hosts.py", RANKS, "0,1,0,2,1", str(PROGRAM))
LAUNCHES = -(-int(os.environ.get("HBMCOMM_KILLS", "9")) // (RANKS - 2))
LATEST = 2.0  # seconds from the death to the error, once all that are left are in calls
WORDS = r"PeerError at ([0-9.]+) and ([0-9.]+), in calls since ([0-9.]+)"

pytestmark = [pytest.mark.ranks, pytest.mark.alone]


@pytest.mark.parametrize(
    ("transport", "mpi", "seed"),
    [
        *(("direct", MPIS[seed % len(MPIS)], seed) for seed in range(LAUNCHES)),
        ("hierarchical", "openmpi", 1),
        ("hierarchical", "mpich", 2),
    ],
)
def test_survivors_learn_of_each_death_and_nothing_stays_behind(
    survivors: Survivors, transport: str, mpi: str, seed: int
) -> None:
    program = ON_HOSTS if transport == "hierarchical" else (PROGRAM, RANKS)
    with nothing_left(besides=tracking.SEGMENTS):  # an MPI's may stay; survivors looks at ours
        written = survivors(*program, transport, str(seed), mpi=mpi)
    for number in range(RANKS - 1):
        seen = {name: text for name, text in written.items() if name.startswith(f"round{number}-")}
        assert len(seen) == RANKS - 1 - number, f"round {number}: {seen}"
        noticed = [re.match(WORDS, words) for words in seen.values()]
        assert all(noticed), f"round {number}: {seen}"
        moments = [[float(moment) for moment in match.groups()] for match in noticed if match]
        begin = max(float(written[f"moment{number}"]), *(ready for *_, ready in moments))
        for first, again, _ in moments:
            assert max(first - begin, again - first) < LATEST, f"round {number}: {begin}, {seen}"
