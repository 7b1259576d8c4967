"""The rank program of a check on this machine: node 0 for everything, or refusals in words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hbmcomm
from experiments.emulation.question import FOUND, HBW_KINDS
from tests.experiments.emulation.kernel_view import needs_numa_maps
from tests.starting import Start

pytestmark = [
    pytest.mark.ranks,
    needs_numa_maps,
    pytest.mark.skipif(
        len(hbmcomm.topology().nodes) > 1, reason="written for a machine with one node"
    ),
]
NBYTES = 64 * 1024


@pytest.fixture
def check(tmp_path: Path, mpirun: Start) -> Callable[..., list[dict[str, Any]]]:
    """check(hbw_nodes): what two ranks found, in their order."""

    def run(hbw_nodes: str) -> list[dict[str, Any]]:
        env = {"MEMKIND_HBW_NODES": hbw_nodes}
        mpirun("experiments.emulation.check", 2, str(tmp_path), str(NBYTES), env=env)
        found: list[dict[str, Any]] = json.loads((tmp_path / FOUND).read_text())["ranks"]
        return found

    return run


def test_pages_are_seen_by_their_owner_and_by_others(check: Callable[..., Any]) -> None:
    ranks = check("0")
    assert [rank["rank"] for rank in ranks] == [0, 1]
    assert ranks[1]["memkind"] is None, "one rank on each node asks memkind"
    for rank in ranks:
        for kind in ("regular", *HBW_KINDS):
            memory = rank["memory"][kind]
            assert memory["private"]["pages"] == {"0": NBYTES}
            assert memory["private"]["witness"]["0"] - NBYTES in (0, 4096), "whole pages"
            assert memory["arena"]["pages"] == {"0": NBYTES}
            seen = memory["arena"]["seen"]
            assert seen[rank["rank"]]["0"] >= 2 * NBYTES, "its own two arrays"
            assert seen[1 - rank["rank"]]["0"] >= NBYTES // 2, "its part of the other's"


def test_where_there_is_no_hbm_the_library_says_so(check: Callable[..., Any]) -> None:
    for rank in check(""):
        assert rank["memory"]["regular"]["private"]["pages"] == {"0": NBYTES}
        for kind in HBW_KINDS:
            for where in ("private", "arena"):
                answer = rank["memory"][kind][where]
                assert answer["error"] == "KindUnavailable"
                assert "no HBM: " in answer["text"]
