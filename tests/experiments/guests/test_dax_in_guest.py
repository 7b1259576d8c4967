"""HBM that is a device: the arena lives on it, in and out of containers; online it is a node."""

from pathlib import Path
from typing import Any

import pytest

from experiments.emulated import verdict
from experiments.environments.profiles import Machine
from experiments.guests import command

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.timeout(900)]

PROGRAMS = [
    Path(__file__).parent / "ranks" / name
    for name in ("dax_arena.py", "stand_in.py", "other_job.py")
]
MACHINE, DEVICE, RANKS = "hbm-as-dax", "/dev/dax0.0", 2
ALL = Machine(cpus="0-3", mems="0", dax=(DEVICE,), uid=1000, gid=1000)


def bare(there: Any) -> Any:
    """The arena on the device, on the guest itself."""
    return there.ranks("dax", RANKS, ["FOLDER/dax_arena.py", DEVICE], *PROGRAMS)


def contained(there: Any) -> Any:
    """The same in a container that has the device."""
    program = ["FOLDER/dax_arena.py", DEVICE]
    return there.contained("dax-contained", RANKS, program, *PROGRAMS, machine=ALL)


def online(there: Any) -> Any:
    """A check of everything once the device has become memory, which it stays."""
    there.root("daxctl reconfigure-device --mode=system-ram dax0.0")
    return command.checked(there.guest, online=True)


@pytest.mark.visit(MACHINE, bare)
def test_the_arena_lives_on_the_device(brought: Any) -> None:
    assert brought.code == 0, brought.said
    assert brought.said.splitlines().count("on the device") == RANKS


@pytest.mark.visit(MACHINE, contained)
def test_in_a_container_too(brought: Any) -> None:
    assert brought.code == 0, brought.said
    assert brought.said.splitlines().count("on the device") == RANKS


@pytest.mark.visit(MACHINE, online, last=True)
def test_online_it_is_found_as_an_hbm_node(brought: Any) -> None:
    assert all(row.ok for row in brought), "\n" + verdict.to_table(brought, 160)
    told = next(row for row in brought if row.what == "HBM nodes")
    assert told.found == "1"
