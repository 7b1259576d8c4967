"""The rank program of a check on this machine: node 0 for everything, or refusals in words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hbmcomm
from experiments.emulation.differences import KINDS
from tests.starting import Start

pytestmark = [
    pytest.mark.ranks,
    pytest.mark.skipif(
        len(hbmcomm.topology().nodes) > 1, reason="written for a machine with one node"
    ),
]
NBYTES = 64 * 1024


@pytest.fixture
def check(tmp_path: Path, mpirun: Start) -> Callable[..., list[dict[str, Any]]]:
    """check(hbw_nodes): what two ranks found, in their order."""

    def run(hbw_nodes: str) -> list[dict[str, Any]]:
        env, file = {"MEMKIND_HBW_NODES": hbw_nodes}, tmp_path / "found.json"
        mpirun("experiments.emulation.check", 2, str(file), str(NBYTES), *KINDS, env=env)
        ranks: list[dict[str, Any]] = json.loads(file.read_text())["ranks"]
        return ranks

    return run


def test_all_memory_is_on_the_only_node(check: Callable[..., Any]) -> None:
    ranks = check("0")
    assert ranks[0]["memkind"] is not None
    assert ranks[1]["memkind"] is None, "one rank on each node asks memkind"
    for rank in ranks:
        for kind in KINDS:
            for answer in rank["memory"][kind].values():
                assert answer["pages"] == {"0": NBYTES}


def test_where_there_is_no_hbm_the_library_says_so(check: Callable[..., Any]) -> None:
    for rank in check(""):
        regular, *others = (rank["memory"][kind] for kind in KINDS)
        assert regular["private"]["pages"] == {"0": NBYTES}
        for answer in (answer for other in others for answer in other.values()):
            assert answer["error"] == "KindUnavailable"
            assert "no HBM: " in answer["text"]
