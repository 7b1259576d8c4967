"""Docker in a guest, in a container that may use one quadrant: what it gets, and what it sees."""

from pathlib import Path
from typing import Any

import pytest

from experiments.environments.profiles import CONTAINER_USER as USER
from experiments.environments.profiles import Machine

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).parent / "ranks" / "confined.py"
QUADRANT = Machine(cpus="0-1", mems="0,4", dax=(), uid=USER, gid=USER)
OTHER = "5"
SYS_ADMIN, SYS_NICE = 21, 23  # bits of a set of capabilities: linux/capability.h


def tuned(there: Any) -> Any:
    """The first quadrant with the tuned profile."""
    program = [f"FOLDER/{PROGRAM.name}", "FOLDER", OTHER]
    return there.contained("tuned", 2, program, PROGRAM, machine=QUADRANT)


def default(there: Any) -> Any:
    """One rank there with the engine's own filter and capabilities."""
    return alone(there, "default")


def privileged(there: Any) -> Any:
    """One rank there with everything that the engine can give."""
    return alone(there, "privileged")


def alone(there: Any, profile: str) -> Any:
    program = [f"FOLDER/{PROGRAM.name}", "FOLDER", OTHER]
    return there.contained(profile, 1, program, PROGRAM, machine=QUADRANT, profile=profile)


def given(rank: dict[str, Any]) -> tuple[str, int]:
    """Whether a rank's system calls are filtered, 0 or 2; and the capabilities that there are."""
    return rank["status"]["Seccomp"], int(rank["status"]["CapBnd"], 16)


@pytest.mark.visit("knl-snc4-flat", tuned)
def test_with_the_tuned_profile_local_hbm_works(brought: Any) -> None:
    for rank in brought.right()["ranks"]:
        assert given(rank) == ("2", 0)
        assert rank["local"]["private"]["pages"] == {"4": 65536}
        assert rank["local"]["private"]["way"] == "move_pages"
        assert rank["local"]["arena"]["pages"] == {"4": 65536}
        assert rank["local"]["arena"]["way"] == "move_pages"


@pytest.mark.visit("knl-snc4-flat", tuned)
def test_the_hbm_of_another_quadrant_is_refused(brought: Any) -> None:
    ranks = brought.right()["ranks"]
    for rank in ranks:
        for shown in (rank["other"], rank["other arena"]):
            assert shown.startswith("KindUnavailable: ")
            assert "hbw needs node 5, but this process may use only nodes 0,4" in shown
            assert "--cpuset-mems" in shown
        for where in ("private", "arena"):  # all HBM includes what may not be used
            assert rank["all"][where]["error"] == "KindUnavailable"
            assert "node 5-7" in rank["all"][where]["text"]
    assert {rank["cpu"] for rank in ranks} == {0, 1}


@pytest.mark.visit("knl-snc4-flat", tuned)
def test_the_container_sees_the_whole_machine(brought: Any) -> None:
    topology = brought.right()["topology"]
    assert [node["id"] for node in topology["nodes"]] == list(range(8))
    assert topology["nodes"][0]["distances"]["4"] == 31
    assert topology["hbm"]["nodes"] == [4, 5, 6, 7]
    assert "Knights Landing" in topology["hbm"]["rule"]
    assert any("hwloc calls it MCDRAM" in text for text in topology["hbm"]["evidence"])


@pytest.mark.visit("knl-snc4-flat", privileged)
def test_the_privileged_profile_lifts_the_filter_but_not_the_quadrant(brought: Any) -> None:
    (rank,) = brought.right()["ranks"]
    filtered, capabilities = given(rank)
    assert filtered == "0"
    assert {SYS_ADMIN, SYS_NICE} <= {bit for bit in range(64) if capabilities >> bit & 1}
    assert rank["local"]["private"]["pages"] == {"4": 65536}
    assert rank["local"]["arena"]["pages"] == {"4": 65536}
    assert "hbw needs node 5, but this process may use only nodes 0,4" in rank["other"]


@pytest.mark.visit("knl-snc4-flat", default)
def test_the_default_profile_is_told_what_it_lacks(brought: Any) -> None:
    for rank in brought.right()["ranks"]:
        filtered, capabilities = given(rank)
        assert filtered == "2" and not capabilities >> SYS_ADMIN & 1
        for where in ("private", "arena"):
            assert rank["local"][where]["error"] == "KindUnavailable"
            text = rank["local"][where]["text"]
            assert "SYS_NICE" in text
