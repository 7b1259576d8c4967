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


def test_a_user_with_ids_lacks_nothing(machine: Machine) -> None:
    for name in ("ann", "1000"):
        ids = f"other:100000:65536\n{name}:165536:65536\n"
        root = machine(ids, ids, proc__sys__user__max_user_namespaces="10000\n")
        assert user_namespaces.hindrance(root) is None


def test_a_lacking_newuidmap_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "find", lambda name: None)
    refusal = user_namespaces.hindrance(machine("", ""))
    assert refusal and refusal.remedy == "sudo apt-get install -y uidmap"


def test_ids_that_lack_come_with_a_free_range(machine: Machine) -> None:
    for subuid, subgid, lack, span in (
        ("", "", "subuid, which lends 0", "100000-165535"),
        ("other:100000:65536\n", "", "subuid, which lends 0", "165536-231071"),
        ("ann:100000:65536\n", "ann:100000:1000\n", "subgid, which lends 1000", "165536-231071"),
    ):
        refusal = user_namespaces.hindrance(machine(subuid, subgid))
        assert refusal and lack in refusal.lack and "65536 ids for ann" in refusal.lack
        assert f"usermod --add-subuids {span} --add-subgids {span} ann" in refusal.remedy


def test_ids_that_a_database_lends_are_not_looked_for_in_files(machine: Machine) -> None:
    root = machine("", "")
    for line, lacks in (("subid: sss", False), ("subid: files", True)):
        (root / user_namespaces.DATABASE).write_text(f"passwd: files\n{line}\n")
        assert bool(user_namespaces.hindrance(root)) == lacks, line


def test_a_setting_that_forbids_namespaces_comes_with_one_that_does_not(machine: Machine) -> None:
    refusal = user_namespaces.hindrance(machine("", "", proc__sys__user__max_user_namespaces="0\n"))
    assert refusal and "max_user_namespaces is 0" in refusal.lack
    assert refusal.remedy == "sudo sysctl -w user.max_user_namespaces=10000"


def test_cgroups_of_both_versions_are_refused_where_both_have_controllers(machine: Machine) -> None:
    root = machine("ann:100000:65536\n", "ann:100000:65536\n")
    controllers = root / user_namespaces.HYBRID
    controllers.parent.mkdir(parents=True)
    controllers.write_text("cpu memory\n")
    refusal = user_namespaces.hindrance(root)
    assert refusal and "cgroups" in refusal.lack
    controllers.write_text("\n")
    assert user_namespaces.hindrance(root) is None


def test_containers_of_root_take_a_range_that_is_long_enough(machine: Machine) -> None:
    for subuid, subgid, first in (
        ("containers:200000:65536\n", "containers:300000:65536\n", (200000, 300000)),
        ("containers:1:9\ncontainers:200000:70000\n", "containers:3:65536\n", (200000, 3)),
        ("containers:200000:65535\n", "containers:300000:65536\n", (0, 0)),
        ("ann:200000:65536\n", "", (0, 0)),
    ):
        machine(subuid, subgid)
        assert user_namespaces.of_root() == first
