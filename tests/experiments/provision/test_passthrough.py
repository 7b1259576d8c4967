"""What of this machine a container is given, and what it is not."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from experiments.emulation import description
from experiments.machine.facts import parse_list
from experiments.model.errors import Missing
from experiments.provision import passthrough
from tests.second_user import SecondUser


def test_the_kernels_lists_are_read() -> None:
    lists = {"": set(), "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "0,4": {0, 4}}
    assert {text: parse_list(text) for text in lists} == lists


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


def test_a_container_gets_no_cpu_or_node_that_this_process_may_not_use_and_is_not_root() -> None:
    machine = passthrough.machine()
    assert parse_list(machine.cpus) == os.sched_getaffinity(0)
    status = Path("/proc/self/status").read_text()
    allowed = next(line for line in status.splitlines() if line.startswith("Mems_allowed_list"))
    assert parse_list(machine.mems)
    assert parse_list(machine.mems) <= parse_list(allowed.split()[1])
    assert passthrough.owner()[0] != 0


def chosen(first: int, last: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is chosen for ranks of root between two ids."""
    monkeypatch.setattr(passthrough, "UNUSED", range(first, last + 1))
    number: int = passthrough.nobodys.__wrapped__()
    return number


def test_ranks_of_root_are_no_user_of_this_machine() -> None:
    number = passthrough.nobodys()
    assert number in passthrough.UNUSED
    assert number not in {user.pw_uid for user in pwd.getpwall()}
    assert number not in {group.gr_gid for group in grp.getgrall()}


def test_ranks_get_no_users_id(second_user: SecondUser, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Missing, match="is a user, a group or a subordinate id"):
        chosen(second_user.uid, second_user.uid, monkeypatch)


def test_an_id_that_a_user_may_take_in_a_namespace_is_not_given_to_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "subuid").write_text("someone:60000:1000\n# a remark\nbroken:x:1\n")
    (tmp_path / "subgid").write_text("other:61001:2\n")
    files = (tmp_path / "subuid", tmp_path / "subgid", tmp_path / "none")
    monkeypatch.setattr(passthrough, "SUBORDINATE", files)
    monkeypatch.setattr(passthrough, "_is_known", lambda number: number == 61000)
    assert chosen(60706, 61183, monkeypatch) == 61003


def test_a_guests_container_gets_the_whole_machine_as_it_comes_up() -> None:
    knl = description.emulated(description.load("knl-snc4-flat"))
    assert (knl.cpus, knl.mems, knl.dax) == ("0,1,2,3,4,5,6,7", "0,1,2,3,4,5,6,7", ())
    offline = description.emulated(description.load("hbm-as-dax"))
    assert (offline.mems, offline.dax) == ("0", ("/dev/dax0.0",))
    assert offline.uid != 0
