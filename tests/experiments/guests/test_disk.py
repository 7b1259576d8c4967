import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.guests import disk
from experiments.guests.disk import GuestMissing
from experiments.provision.image import Image, checkout

IMAGE = Image("hbmcomm:mpich", "sha256:1", "debian:bookworm-slim", "3.11", "mpich", "in", False)


def test_the_build_is_asked_for_exactly_this() -> None:
    assert disk.build_options(IMAGE, "inputs") == {
        "tag": "hbmcomm:guest-mpich",
        "buildargs": {"IMAGE": "sha256:1", "BASE": "debian:bookworm-slim"},
        "labels": {"hbmcomm.inputs": "inputs", "hbmcomm.checkout": checkout()},
        "network_mode": "host",
    }


def test_the_file_system_is_asked_for_exactly_this() -> None:
    command = disk.mkfs_command(Path("/tree"), Path("/disk"))
    assert Path(command[0]).name == "mkfs.ext4"
    assert " ".join(command[1:]) == (
        "-q -F -m 0 -L guest -O ^has_journal -E lazy_itable_init=0,root_owner=0:0 -d /tree /disk 4G"
    )


def test_whatever_goes_into_the_disk_changes_its_name(tmp_path: Path) -> None:
    recipe = [("init", tmp_path / "init")]
    recipe[0][1].write_text("one")
    first = disk.inputs_hash(IMAGE, recipe, "rules")
    assert first == disk.inputs_hash(IMAGE, recipe, "rules")
    others = [
        disk.inputs_hash(replace(IMAGE, id="sha256:2"), recipe, "rules"),
        disk.inputs_hash(replace(IMAGE, tag="hbmcomm:impi"), recipe, "rules"),
        disk.inputs_hash(replace(IMAGE, base="debian:trixie"), recipe, "rules"),
        disk.inputs_hash(IMAGE, [("start", recipe[0][1])], "rules"),
        disk.inputs_hash(IMAGE, recipe, "other rules"),
    ]
    recipe[0][1].write_text("two")
    others.append(disk.inputs_hash(IMAGE, recipe, "rules"))
    assert len({first, *others}) == 7


def test_who_is_not_root_is_told_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "DISKS", tmp_path)
    monkeypatch.setattr(disk.os, "geteuid", lambda: 1000)
    nobody: Any = None  # an engine would be asked in vain
    with pytest.raises(GuestMissing, match=r"needs root.*sudo ./inv vm"):
        disk.ensure(nobody, IMAGE)


@pytest.mark.container
def test_its_engine_starts_however_long_the_path_of_the_checkout_is(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    """And the machine's own engine keeps its bridge."""
    with disk.private_engine(tmp_path / ("long" * 25) / "docker") as private:
        assert private.images.list() == []
        assert private.info()["Driver"] == "overlay2"
    assert [network.name for network in engine.networks.list(names=["bridge"])] == ["bridge"]
    assert Path("/sys/class/net/docker0").exists()


@pytest.mark.container
@pytest.mark.timeout(600)
def test_it_is_made_once_and_found_again(
    engine: docker.DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = disk.ensure(engine, image)
    said: list[str] = []
    assert disk.ensure(engine, image, said.append) == made
    assert said == []
    assert all(path.is_file() for path in (made.kernel, made.initramfs, made.image))
    assert made.image.stat().st_blocks * 512 < made.image.stat().st_size / 2  # mostly holes
    assert sorted(path.name for path in made.image.parent.parent.iterdir()) == sorted(
        (".lock", made.image.parent.name)
    )
    ours = ["hbmcomm.stage=guest", f"hbmcomm.checkout={checkout()}"]
    assert engine.images.list(filters={"dangling": True, "label": ours}) == []


@pytest.mark.container
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_told_and_nothing_half_made_stays(
    engine: docker.DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "small", small], check=True)
    try:
        monkeypatch.setattr(disk, "DISKS", small / "guest")
        with pytest.raises(GuestMissing, match=r"could not be made.*df -h"):
            disk.ensure(engine, image)
        assert [path.name for path in (small / "guest").iterdir()] == [".lock"]
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
