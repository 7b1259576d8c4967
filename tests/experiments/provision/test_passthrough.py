"""What of this machine a container is given, and what it is not."""

import os
from pathlib import Path

import pytest

from experiments.emulation import description
from experiments.programs.machine.facts import parse_list
from experiments.provision import passthrough


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("", set()), ("0", {0}), ("0-3,8", {0, 1, 2, 3, 8}), ("0,4", {0, 4})],
)
def test_the_kernels_lists_are_read(text: str, numbers: set[int]) -> None:
    assert parse_list(text) == numbers


def test_only_device_files_are_passed_on(tmp_path: Path) -> None:
    online_as_a_node, plain = tmp_path / "dax0.0", tmp_path / "dax1.0"
    plain.write_text("no device")
    paths = [Path("/dev/null"), online_as_a_node, plain]
    assert passthrough.devices(paths) == ("/dev/null",)


def test_a_container_joins_the_groups_that_may_use_its_devices(tmp_path: Path) -> None:
    files = []
    for name, mode in (("dax0.0", 0o660), ("dax1.0", 0o600), ("dax2.0", 0o640)):
        files.append(tmp_path / name)
        files[-1].touch()
        files[-1].chmod(mode)
    group = files[0].stat().st_gid
    paths = [str(file) for file in files]
    assert passthrough.groups(paths, own=group + 1) == (group,)
    assert passthrough.groups(paths, own=group) == ()
    assert passthrough.groups(paths[1:], own=group + 1) == ()


def test_a_container_gets_no_more_cpus_than_this_process_has() -> None:
    assert parse_list(passthrough.machine().cpus) == os.sched_getaffinity(0)


def test_a_container_gets_no_node_that_this_process_may_not_use() -> None:
    status = Path("/proc/self/status").read_text()
    allowed = next(line for line in status.splitlines() if line.startswith("Mems_allowed_list"))
    given = parse_list(passthrough.machine().mems)
    assert given
    assert given <= parse_list(allowed.split()[1])


def test_no_container_runs_as_root() -> None:
    assert passthrough.owner()[0] != 0


def test_a_guests_container_gets_the_whole_machine_as_it_comes_up() -> None:
    knl = passthrough.emulated(description.load("knl-snc4-flat"))
    assert (knl.cpus, knl.mems, knl.dax) == ("0,1,2,3,4,5,6,7", "0,1,2,3,4,5,6,7", ())
    offline = passthrough.emulated(description.load("hbm-as-dax"))
    assert (offline.mems, offline.dax) == ("0", ("/dev/dax0.0",))
    assert offline.uid != 0
