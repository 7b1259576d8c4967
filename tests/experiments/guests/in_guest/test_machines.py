"""On every emulated machine all memory is found, and given, as its description says.

Checked here are machines with nodes of a sort that no other has. By hand, all of them:
    HBMCOMM_MACHINES=all .venv/bin/pytest tests/experiments/guests/in_guest/test_machines.py
"""

import os
from typing import Any

import pytest

from experiments.emulation import verdict
from experiments.emulation.verdict import Row
from experiments.guests import command
from experiments.model.environment import machine_names

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.timeout(900)]


LIKE_OTHERS = () if os.environ.get("HBMCOMM_MACHINES") == "all" else ("cxl", "plain")
"""Machines all of whose nodes are of a sort that another machine has: without CPUs, as gh200's, or
ordinary."""
MACHINES = [name for name in machine_names() if name not in LIKE_OTHERS]
ENOUGH = 180  # seconds of one core, for booting a machine and checking it


def check(there: Any) -> Any:
    """A whole check of where everything is."""
    return command.checked(there.guest)


@pytest.mark.parametrize(
    "machine",
    [pytest.param(name, marks=pytest.mark.visit(name, check)) for name in MACHINES],
)
def test_everything_is_as_described(machine: str, brought: tuple[Row, ...]) -> None:
    assert all(row.ok for row in brought), "\n" + verdict.to_table(brought, 160)


@pytest.mark.visit("knl-snc4-flat", check)
def test_a_boot_and_a_check_take_less_than_three_minutes(visit: Any) -> None:
    assert visit.seconds < ENOUGH
