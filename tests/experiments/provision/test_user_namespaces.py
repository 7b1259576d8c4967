"""What an ordinary user's Podman needs of a machine, and which ids containers of root's take."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments.processes import executables
from experiments.provision import user_namespaces

Machine = Callable[..., Path]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """machine(subuid, subgid, files): the root of one, on which this process is user 1000, ann."""
    monkeypatch.setattr(executables, "find", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_name="ann"))
    files = (tmp_path / "etc/subuid", tmp_path / "etc/subgid")
    monkeypatch.setattr(user_namespaces, "SUBORDINATE", files)

    def make(subuid: str, subgid: str, **others: str) -> Path:
        (tmp_path / "etc").mkdir(exist_ok=True)
        for file, text in zip(files, (subuid, subgid), strict=True):
            file.write_text(text)
        for name, text in others.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


@pytest.mark.parametrize("name", ["ann", "1000"])
def test_a_user_with_ids_lacks_nothing(machine: Machine, name: str) -> None:
    ids = f"other:100000:65536\n{name}:165536:65536\n"
    root = machine(ids, ids, proc__sys__user__max_user_namespaces="10000\n")
    assert user_namespaces.hindrance(root) is None


def test_without_newuidmap_its_package_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executables, "find", lambda name: None)
    refusal = user_namespaces.hindrance(machine("", ""))
    assert refusal and refusal.remedy == "sudo apt-get install -y uidmap"


@pytest.mark.parametrize(
    ("subuid", "subgid", "lack", "span"),
    [
        ("", "", "subuid, which lends 0", "100000-165535"),
        ("other:100000:65536\n", "", "subuid, which lends 0", "165536-231071"),
        ("ann:100000:65536\n", "ann:100000:1000\n", "subgid, which lends 1000", "165536-231071"),
    ],
)
def test_ids_that_lack_come_with_a_free_range(
    machine: Machine, subuid: str, subgid: str, lack: str, span: str
) -> None:
    refusal = user_namespaces.hindrance(machine(subuid, subgid))
    assert refusal and lack in refusal.lack and "65536 ids for ann" in refusal.lack
    assert f"usermod --add-subuids {span} --add-subgids {span} ann" in refusal.remedy


@pytest.mark.parametrize(("line", "lacks"), [("subid: sss", False), ("subid: files", True)])
def test_ids_that_a_database_lends_are_not_looked_for_in_files(
    machine: Machine, line: str, lacks: bool
) -> None:
    root = machine("", "")
    (root / user_namespaces.DATABASE).write_text(f"passwd: files\n{line}\n")
    assert bool(user_namespaces.hindrance(root)) == lacks


def test_a_setting_that_forbids_namespaces_comes_with_one_that_does_not(machine: Machine) -> None:
    refusal = user_namespaces.hindrance(machine("", "", proc__sys__user__max_user_namespaces="0\n"))
    assert refusal and "max_user_namespaces is 0" in refusal.lack
    assert refusal.remedy == "sudo sysctl -w user.max_user_namespaces=10000"


@pytest.mark.parametrize(("controllers", "refused"), [("cpu memory\n", True), ("\n", False)])
def test_cgroups_of_both_versions_are_refused_where_both_have_controllers(
    machine: Machine, controllers: str, refused: bool
) -> None:
    root = machine("ann:100000:65536\n", "ann:100000:65536\n")
    (root / user_namespaces.HYBRID).parent.mkdir(parents=True)
    (root / user_namespaces.HYBRID).write_text(controllers)
    refusal = user_namespaces.hindrance(root)
    assert bool(refusal) == refused
    assert not refusal or "cgroups" in refusal.lack


@pytest.mark.parametrize(
    ("subuid", "subgid", "first"),
    [
        ("containers:200000:65536\n", "containers:300000:65536\n", (200000, 300000)),
        ("containers:1:9\ncontainers:200000:70000\n", "containers:3:65536\n", (200000, 3)),
        ("containers:200000:65535\n", "containers:300000:65536\n", (0, 0)),
        ("ann:200000:65536\n", "", (0, 0)),
    ],
)
def test_containers_of_root_take_a_range_that_is_long_enough(
    machine: Machine, subuid: str, subgid: str, first: tuple[int, int]
) -> None:
    machine(subuid, subgid)
    assert user_namespaces.of_root() == first
