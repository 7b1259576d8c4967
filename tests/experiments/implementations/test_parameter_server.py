"""Contenders of a parameter server leave the weights that SGD with momentum gives."""

from pathlib import Path

import pytest

from tests.starting import Start

RANKS = Path(__file__).parent / "ranks"


@pytest.mark.ranks
def test_each_contender_is_right(mpirun: Start, tmp_path: Path) -> None:
    assert (
        mpirun(RANKS / "parameter_server.py", 2, str(tmp_path)).output.split().count("right") == 2
    )


@pytest.mark.ranks
def test_each_placement_is_right(mpirun: Start) -> None:
    assert mpirun(RANKS / "parameter_server_hosts.py", 4).output.split().count("right") == 4
