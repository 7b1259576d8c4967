"""An HBM node of 512 MiB that is asked for more: an error of ours on every rank, and no killing."""

import re
from pathlib import Path
from typing import Any

import pytest

from experiments.environments.profiles import CONTAINER_USER as USER
from experiments.environments.profiles import Machine

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).parent / "ranks" / "exhausted.py"
MACHINE = "knl-quadrant-flat"
MIB = 2**20
ALL = Machine(cpus="0-3", mems="0-1", dax=(), uid=USER, gid=USER)


def bare(there: Any) -> Any:
    """600 MiB on the guest itself, and its kernel's log afterwards."""
    program = [f"FOLDER/{PROGRAM.name}", "FOLDER", "600"]
    return there.ranks("bare", 2, program, PROGRAM), there.root("dmesg")


def confined(there: Any) -> Any:
    """300 MiB, which the node has, in a container that may have 256 in all."""
    program = [f"FOLDER/{PROGRAM.name}", "FOLDER", "300"]
    ran = there.contained("limited", 2, program, PROGRAM, machine=ALL, limit="256m")
    return ran, there.root("dmesg")


@pytest.mark.visit(MACHINE, bare)
def test_more_than_the_node_has_is_an_error_on_every_rank(brought: Any) -> None:
    ran, kernel = brought
    _all_were_refused(ran, 6, "on node 1", "MiB are free there")
    assert 300 * MIB < sum(rank["taken"] for rank in ran.found) < 512 * MIB
    _nobody_was_killed(kernel)


@pytest.mark.visit(MACHINE, confined)
def test_more_than_the_container_may_have_is_one_too(brought: Any) -> None:
    ran, kernel = brought
    _all_were_refused(ran, 3, "the memory limit of this cgroup leaves", "--memory")
    assert 64 * MIB < sum(rank["taken"] for rank in ran.found) < 256 * MIB
    _nobody_was_killed(kernel)


def _all_were_refused(ran: Any, first_digit: int, why: str, remedy: str) -> None:
    """Every rank got this error in both ways of having memory, and can still communicate."""
    for rank in ran.right():
        for where in ("private", "arena"):
            assert rank[where].startswith(f"OutOfMemory: hbw: asked for {first_digit}")
            assert why in rank[where] and remedy in rank[where]
        assert rank["refusal"].startswith("OutOfMemory: hbw: asked for ")
        assert why in rank["refusal"]
        assert rank["after"] == {"1": MIB}


def _nobody_was_killed(kernel: str) -> None:
    assert "Linux version" in kernel  # the log is whole
    assert not re.findall(r"(?i).*(?:\boom|out of memory).*", kernel)
