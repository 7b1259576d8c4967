"""HBM that is a device: the arena lives on it, in and out of containers; online it is a node."""

from typing import Any

import pytest

from experiments.emulation import description, guest_command
from experiments.environments.profiles import CONTAINER_USER as USER
from experiments.environments.profiles import Machine
from experiments.model.checkout import ROOT
from experiments.provision.image import PREFIX

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(1800)]

PROGRAMS = [
    ROOT / "tests/hbmcomm/memory/ranks" / name
    for name in ("dax_arena.py", "stand_in.py", "other_job.py", "dax_frames.py")
]
MACHINE, DEVICE, RANKS = "hbm-as-dax", "/dev/dax0.0", 2
BLOCKS = "/sys/devices/system/node/node1/memory[0-9]*"  # of the node that it becomes
ALL = Machine(cpus="0-3", mems="0", dax=(DEVICE,), uid=USER, gid=USER)


def bare(there: Any) -> Any:
    """The arena on the device, on the guest itself."""
    return there.ranks("dax", RANKS, ["FOLDER/dax_arena.py", DEVICE], *PROGRAMS)


def contained(there: Any) -> Any:
    """The arena on the device, in a container that has it."""
    program = ["FOLDER/dax_arena.py", DEVICE]
    return there.contained("dax-contained", RANKS, program, *PROGRAMS, machine=ALL)


def online(there: Any) -> Any:
    """The frames of an array on the device, as only root may know; then it is brought online, and
    stays so: the blocks of memory that its node is made of, and a check of everything."""
    program = [f"{PREFIX}/bin/python", "FOLDER/dax_frames.py", DEVICE]
    frames = there.run("dax-frames", program, *PROGRAMS, root=True)
    there.root("daxctl reconfigure-device --mode=system-ram dax0.0")
    blocks = there.root(f"cat /sys/devices/system/memory/block_size_bytes; basename -a {BLOCKS}")
    return frames, blocks.split(), guest_command.checked(there.guest, online=True)


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(errand, marks=pytest.mark.visit(MACHINE, errand))
        for errand in (bare, contained)
    ],
)
def test_the_arena_lives_on_the_device(where: object, brought: Any) -> None:
    assert brought.code == 0, brought.output
    assert brought.output.splitlines().count("on the device") == RANKS


@pytest.mark.visit(MACHINE, online, last=True)
def test_an_array_is_in_frames_of_the_device_and_these_are_the_hbm_node(brought: Any) -> None:
    frames, (size, *blocks), _ = brought
    assert frames.code == 0, frames.output
    start, end = (int(address, 16) for address in frames.output.split("-"))
    step = int(size, 16)
    numbers = sorted(int(block.removeprefix("memory")) for block in blocks)
    assert start <= numbers[0] * step and (numbers[-1] + 1) * step <= end
    (device,) = description.load(MACHINE).dax
    assert len(numbers) * step == device.online_bytes


@pytest.mark.visit(MACHINE, online, last=True)
def test_online_it_is_found_as_an_hbm_node(brought: Any) -> None:
    differences = brought[-1]
    assert not differences, "\n" + guest_command.to_table(differences, 160)
    found_online = description.load(MACHINE).found_online
    assert found_online and found_online.hbm == (1,)
