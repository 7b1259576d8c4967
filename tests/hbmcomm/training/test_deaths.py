"""Where a rank dies, every other one that takes part in its job gets an error that names it."""

from pathlib import Path

import pytest

from tests.starting import Survivors

PROGRAM = Path(__file__).parent / "ranks/dying.py"
ON_HOSTS = Path(__file__).parents[1] / "hierarchical/ranks/on_hosts.py"
PROMPT = 10.0  # seconds after the death, of which an idle machine needs one


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("job", "hosts", "named"),
    [
        ("fused", "0,0,0", "rank 2 died"),
        ("daso", "0,1,0,1", "rank 1 "),  # of the communicators of its host or of its leaders
        ("server", "0,0,0,0", "rank 3 died"),
        ("release", "0,0", "rank 1 died; the "),
        ("offer", "0,0", "rank 1 died; the "),
    ],
)
def test_the_others_learn_of_a_death(
    survivors: Survivors, job: str, hosts: str, named: str
) -> None:
    ranks = hosts.split(",")
    seen = survivors(ON_HOSTS, len(ranks), hosts, str(PROGRAM), job)
    assert len(seen) == len(ranks) - 1, seen
    for words in seen.values():
        assert words.startswith(named), seen
        assert float(words.split()[-2]) < PROMPT, seen
