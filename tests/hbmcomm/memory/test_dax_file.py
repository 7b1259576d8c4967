"""What is a dax device, and the error of everything else."""

import os
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import hbmcomm
from hbmcomm.errors import KindUnavailable, PlacementUnknown
from hbmcomm.memory import dax_file
from hbmcomm.memory.dax_file import DaxFile
from tests.hbmcomm.memory.machine_files import link, put

SIZE = 512 * 2**20


def sysfs(root: Path, driver: str = "device_dax", target: str = "3", size: int = SIZE) -> Path:
    """A tree in which the character device 1:3 (/dev/null, which anyone may open) is dax0.0."""
    folder = root / "devices/platform/e820_pmem/dax0.0/dax0.0"
    put(folder / "size", str(size))
    put(folder / "align", str(2 * 2**20))
    put(folder / "target_node", target)
    put(folder / "numa_node", "0")
    link(folder / "subsystem", root / "bus/dax")
    link(folder / "driver", root / "bus/dax/drivers" / driver)
    link(root / "bus/dax/devices/dax0.0", folder)
    link(root / "dev/char/1:3", folder)
    link(root / "devices/virtual/mem/zero/subsystem", root / "class/mem")
    link(root / "dev/char/1:5", root / "devices/virtual/mem/zero")
    return root


def refusal(path: str, tree: Path) -> str:
    with pytest.raises(KindUnavailable) as raised:
        dax_file.inspect(path, tree)
    return str(raised.value)


def test_a_device_is_what_sysfs_says_of_it(tmp_path: Path) -> None:
    device = dax_file.inspect("/dev/null", sysfs(tmp_path))
    assert device == DaxFile("/dev/null", "dax0.0", (1, 3), SIZE, 2 * 2**20, 3)


def test_its_kind_is_strict_and_names_the_evidence(tmp_path: Path) -> None:
    kind = dax_file.kind_of(dax_file.inspect("/dev/null", sysfs(tmp_path)))
    assert (kind.name, kind.nodes, kind.strict, kind.emulated) == ("dax", (3,), True, False)
    assert kind.evidence == "/dev/null: target_node 3 in /sys/bus/dax/devices/dax0.0"


@pytest.mark.parametrize("target", ["-1", ""])
def test_a_device_may_have_no_node(tmp_path: Path, target: str) -> None:
    device = dax_file.inspect("/dev/null", sysfs(tmp_path, target=target))
    assert device.node is None
    assert dax_file.kind_of(device).nodes == ()


def test_what_is_no_device_or_cannot_be_had_is_refused_with_a_remedy(tmp_path: Path) -> None:
    tree, online = sysfs(tmp_path / "sys"), sysfs(tmp_path / "online", driver="kmem")
    for path, root, words in (
        ("/dev/dax7.0", tree, "device=/dev/dax7.0: there is no such file"),
        ("/dev/dax7.0", tree, "machine are dax0.0 (in a container, pass one in: docker --device"),
        # gone because its memory is a node; and one that a container still has
        ("/dev/dax0.0", online, "dax0.0 is online as memory, node 3; take kind dax_kmem"),
        ("/dev/dax0.0", online, "daxctl reconfigure-device --mode=devdax"),
        ("/dev/null", online, "online as memory"),
        ("/dev/zero", tree, "device 1:5 is not a dax device; take one of this machine's: dax0.0"),
        ("/dev/random", tree, "1:8 is not a dax device"),
        ("/dev/null", sysfs(tmp_path / "empty", size=0), "dax0.0 has no memory (size 0)"),
    ):
        assert words in refusal(path, root), (path, words)


def test_no_devices_at_all_are_none(tmp_path: Path) -> None:
    assert "the dax devices of this machine are none" in refusal("/dev/dax0.0", tmp_path)


@pytest.mark.parametrize(("make", "what"), [("mkdir", "a folder"), ("touch", "no character")])
def test_what_a_mount_makes_of_a_device_is_reported_from_one(
    tmp_path: Path, make: str, what: str
) -> None:
    path = tmp_path / "dax0.0"
    getattr(path, make)()
    message = refusal(str(path), sysfs(tmp_path / "sys"))
    assert f"this is {what}" in message and "--device, not by -v" in message


def test_what_refuses_to_open_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, messages = sysfs(tmp_path), {1: "this container may not open it", 6: "the device is gone"}
    for number, message in (messages | {24: "Too many open files"}).items():
        problem = OSError(number, os.strerror(number), "/dev/null")
        monkeypatch.setattr(dax_file.os, "open", mock.Mock(side_effect=problem))
        assert message in refusal("/dev/null", tree), number


@pytest.mark.parametrize(
    ("mode", "advice"),
    [
        (0o600, "as root, chgrp GROUP /dev/null and chmod 660 /dev/null, then join"),
        (0o660, "join group 1234 (docker: --device /dev/null --group-add 1234"),
    ],
)
def test_a_device_that_only_others_may_use_names_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, advice: str
) -> None:
    tree, stat = sysfs(tmp_path), Path.stat
    refused = mock.Mock(side_effect=PermissionError(13, "Permission denied", "/dev/null"))
    null = stat(Path("/dev/null"))
    owned = SimpleNamespace(
        st_mode=null.st_mode & ~0o777 | mode, st_rdev=null.st_rdev, st_uid=0, st_gid=1234
    )
    monkeypatch.setattr(dax_file.os, "open", refused)
    monkeypatch.setattr(
        Path, "stat", lambda path, **how: owned if path == Path("/dev/null") else stat(path, **how)
    )
    message = refusal("/dev/null", tree)
    assert "may not read and write it" in message
    assert f"mode {mode:o}, user 0, group 1234; {advice}" in message


def maps(root: Path, array: np.ndarray, path: str, before: int = 0, behind: int = 0) -> Path:
    """A table of mappings in which an array, but for its edges, is mapped from a file."""
    start = array.__array_interface__["data"][0]
    low, high = start + before, start + array.nbytes - behind
    lines = (
        f"{low - 9:x}-{low:x} rw-p 00000000 00:00 0 ",
        f"{low:x}-{high:x} rw-s 00200000 00:05 106                        {path}",
        f"{high:x}-{high + 9:x} r--p 00000000 08:01 42                     /dev/null",
    )
    put(root / "self/maps", "\n".join(lines))
    return root


@pytest.fixture
def device_under(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """device_under(array, ...) makes this process's mappings say that an array is on dax0.0."""
    mapped = dax_file.mapped

    def pretend(array: np.ndarray, path: str = "/dev/null", target: str = "3", **edges: int):
        procfs = maps(tmp_path / "proc", array, path, **edges)
        tree = sysfs(tmp_path / "sys", target=target)
        monkeypatch.setattr(dax_file, "mapped", lambda start, end: mapped(start, end, procfs, tree))

    return pretend


def test_an_array_on_a_device_is_on_its_target_node(device_under) -> None:
    array = np.zeros(1000)
    device_under(array)
    assert hbmcomm.placement(array) == {3: 8000}
    assert hbmcomm.placement(array[7:-3]) == {3: 7920}
    assert hbmcomm.placement_method(array) == "device"
    assert hbmcomm.placement_method() != "device"


def test_an_array_partly_on_a_device_is_counted_to_the_byte(device_under) -> None:
    array = np.ones(1000)
    device_under(array, before=800, behind=80)
    assert hbmcomm.placement(array) == {0: 880, 3: 7120}


def test_an_array_elsewhere_is_not(device_under) -> None:
    array, other = np.ones(1000), np.ones(1000)
    device_under(other, path="/dev/zero")
    assert hbmcomm.placement(array) == hbmcomm.placement(other) == {0: 8000}
    assert hbmcomm.placement_method(array) == hbmcomm.placement_method()


def test_a_device_without_a_node_leaves_the_place_unknown(device_under) -> None:
    array = np.ones(1000)
    device_under(array, target="-1")
    with pytest.raises(PlacementUnknown, match="no node of /dev/null"):
        hbmcomm.placement(array)


def test_an_empty_array_on_a_device_is_nowhere(device_under) -> None:
    array = np.ones(1000)
    device_under(array)
    assert hbmcomm.placement(array[:0]) == {}
