import contextlib
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import ImageNotFound

from experiments.emulation import guest_disk
from experiments.model.checkout import ROOT
from experiments.model.errors import Missing
from experiments.provision import bootstrap, building, distro_releases, seccomp
from experiments.provision.building import ImageBuildFailed
from experiments.provision.image import Image, checkout
from tests.refusals import refusal

OURS = ["hbmcomm.stage=guest", f"hbmcomm.checkout={checkout()}"]
IMAGE = Image(
    *("hbmcomm:mpich", "sha256:1", "debian:bookworm-slim", "3.11", "mpich", "in", False),
    base_id="sha256:base",
)


def test_the_build_is_asked_for_exactly_this() -> None:
    assert guest_disk.build_options(IMAGE, "inputs") == {
        "tag": "hbmcomm:guest-mpich",
        "buildargs": {"IMAGE": "sha256:1", "BASE": "sha256:base"},
        "labels": {"hbmcomm.inputs": "inputs", "hbmcomm.checkout": checkout()},
        "network_mode": "host",
    }


def test_the_file_system_is_asked_for_exactly_this() -> None:
    command = guest_disk.mkfs_command(Path("/tree"), Path("/disk"))
    assert Path(command[0]).name == "mkfs.ext4"
    assert " ".join(command[1:]) == (
        "-q -F -m 0 -L guest -O ^has_journal -E lazy_itable_init=0,root_owner=0:0 -d /tree /disk 4G"
    )


def test_whatever_goes_into_the_disk_changes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "init"
    recipe.write_text("one")
    monkeypatch.setattr(guest_disk, "RECIPE", tmp_path)
    first = guest_disk.inputs_of(IMAGE)
    assert first == guest_disk.inputs_of(IMAGE)
    others = [
        guest_disk.inputs_of(replace(IMAGE, id="sha256:2")),
        guest_disk.inputs_of(replace(IMAGE, tag="hbmcomm:impi")),
        guest_disk.inputs_of(replace(IMAGE, base="debian:trixie")),
    ]
    recipe = recipe.rename(tmp_path / "start")
    others.append(guest_disk.inputs_of(IMAGE))
    recipe.write_text("two")
    others.append(guest_disk.inputs_of(IMAGE))
    monkeypatch.setattr(seccomp, "text", lambda: "other rules")
    others.append(guest_disk.inputs_of(IMAGE))
    assert len({first, *others}) == 7


def test_a_disk_that_is_made_otherwise_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_it_is = guest_disk.inputs_of(IMAGE)
    for number, path in enumerate(guest_disk.MAKERS):
        other = tmp_path / path.name
        other.write_text(path.read_text() + "# another way")
        makers = list(guest_disk.MAKERS)
        makers[number] = other
        with monkeypatch.context() as patch:
            patch.setattr(guest_disk, "MAKERS", makers)
            assert guest_disk.inputs_of(IMAGE) != as_it_is
    assert guest_disk.inputs_of(IMAGE) == as_it_is


def test_a_base_that_makes_no_guest_is_reported_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for python, base, refused in (
        ("3.11", "auto", False),
        ("3.12", "auto", True),
        ("3.13", "auto", False),
        ("3.11", "ubuntu:24.04", True),
        ("3.12", "hbmcomm-base:noble", True),
        ("3.12", "debian:bookworm-slim", False),
        ("3.12", "somebody/else:1", False),  # which the build asks
    ):
        monkeypatch.setattr(distro_releases, "host_python", lambda python=python: python)
        answer = refusal(Missing, guest_disk.refuse, base)
        assert answer.endswith("add --base debian:bookworm-slim") == refused, (python, base)
        assert (f"{base} " in answer) == refused, (python, base)


def test_so_is_a_base_that_would_be_bootstrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    for suite, refused in (("bookworm", False), ("noble", True)):
        plan = bootstrap.Recipe(distro_releases.named(suite), "a mirror")  # type: ignore[arg-type]
        monkeypatch.setattr(bootstrap, "recipe", lambda wanted, plan=plan: plan)
        with pytest.raises(Missing) if refused else contextlib.nullcontext():
            guest_disk.refuse("bootstrap")


def test_who_is_not_root_is_reported_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest_disk, "DISKS", tmp_path)
    monkeypatch.setattr(guest_disk.os, "geteuid", lambda: 1000)
    nobody: Any = None  # an engine would be asked in vain
    how = r"needs root.*sudo ./inv vm .*--check --mpi mpich --base debian:bookworm-slim$"
    with pytest.raises(Missing, match=how):
        guest_disk.ensure(nobody, IMAGE)


LINKS = (
    *("boot", "boot/vmlinuz", "boot/initramfs", "hbmcomm"),
    f"hbmcomm/{seccomp.FILE.parent.relative_to(ROOT)}",
    *("var", "var/lib", "var/lib/docker"),
)


@pytest.mark.parametrize(
    ("name", "absolute"),
    [*((name, True) for name in LINKS), ("boot", False), ("var/lib/docker", False)],
)
def test_no_link_of_a_base_image_leads_to_files_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, absolute: bool
) -> None:
    host, made, seeded = tmp_path / "host", tmp_path / "made", list[Path]()
    for part in ("vmlinuz", "initramfs"):  # what a link to the folder would have moved away
        (host / "kept").mkdir(parents=True, exist_ok=True)
        (host / part).write_text("the host's")
    before = sorted(host.rglob("*"))
    made.mkdir()

    def tree(client: Any, built: str, folder: Path, owners: str) -> None:
        for part in ("boot/vmlinuz", "boot/initramfs"):
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            (folder / part).write_text("the guest's")
        link = folder / name
        if link.is_dir():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(host if absolute else os.path.relpath(host, link.parent))

    monkeypatch.setattr(guest_disk.image_files, "unpack", tree)
    monkeypatch.setattr(guest_disk, "_seed", lambda client, image, data: seeded.append(data))
    nobody: Any = None
    with pytest.raises(Missing, match=f": /{name} is a link to .*host in base debian:bookworm"):
        guest_disk._make(nobody, IMAGE, "built", made, lambda text: None)
    assert sorted(host.rglob("*")) == before
    assert seeded == []


def test_the_engine_that_fills_the_disk_meets_no_files_of_the_base_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, made = tmp_path / "host", tmp_path / "made"
    host.mkdir()
    (host / "file").touch()
    made.mkdir()

    def tree(client: Any, built: str, folder: Path, owners: str) -> None:
        for part in ("boot/vmlinuz", "boot/initramfs", "var/lib/docker/daemon.json"):
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            (folder / part).touch()
        (folder / "var/lib/docker/overlay2").symlink_to(host)

    class Seeded(Exception):
        pass

    def seed(client: Any, image: Image, data: Path) -> None:
        assert data == made / "tree/var/lib/docker" and not data.exists()
        raise Seeded

    monkeypatch.setattr(guest_disk.image_files, "unpack", tree)
    monkeypatch.setattr(guest_disk, "_seed", seed)
    nobody: Any = None
    with pytest.raises(Seeded):
        guest_disk._make(nobody, IMAGE, "built", made, lambda text: None)
    assert (host / "file").exists()


@pytest.fixture
def stand_in(
    engine: docker.DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A name for the image of the guest that nobody else uses; and where disks are made."""
    name = "hbmcomm-test:guest"
    monkeypatch.setattr(guest_disk, "tag", lambda mpi: name)
    monkeypatch.setattr(guest_disk, "DISKS", tmp_path / "guest")
    monkeypatch.setattr(guest_disk, "LOG", tmp_path / "guest.log")
    yield name
    with contextlib.suppress(ImageNotFound):
        engine.images.remove(name)
    halfway = ["hbmcomm.stage=guest", f"hbmcomm.inputs={image.inputs}"]  # a build that failed
    for labels in (OURS, halfway):
        engine.images.prune(filters={"dangling": True, "label": labels})


@pytest.mark.container
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("disk")  # its build has been, and is only repeated
@pytest.mark.skipif(os.geteuid() != 0, reason="making the disk needs root")
def test_it_is_made_of_what_was_built_whoever_takes_the_name(
    engine: docker.DockerClient, image: Image, stand_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, exported = building.build, []

    def and_another(*asked: Any) -> str:
        """Another checkout's guest takes the name at once."""
        built = build(*asked)
        engine.images.get(image.id).tag(*stand_in.split(":"))
        return built

    def tree(client: docker.DockerClient, name: str, folder: Path, owners: str) -> None:
        exported.append(client.images.get(name).labels)
        raise OSError("that is all that is asked here")

    monkeypatch.setattr(guest_disk.building, "build", and_another)
    monkeypatch.setattr(guest_disk.image_files, "unpack", tree)
    with pytest.raises(Missing, match="all that is asked"):
        guest_disk.ensure(engine, image)
    assert [labels["hbmcomm.inputs"] for labels in exported] == [guest_disk.inputs_of(image)]


@pytest.mark.container
@pytest.mark.skipif(os.geteuid() != 0, reason="making the disk needs root")
def test_a_foreign_base_that_is_not_debian_is_reported_by_its_name(
    engine: docker.DockerClient, image: Image, stand_in: str
) -> None:
    shown = 'ID=other\\nPRETTY_NAME="Other Linux 1"\\n'
    recipe = f"FROM {image.tag}\nUSER 0\nRUN printf '{shown}' >/usr/lib/os-release\n"
    asked = {"fileobj": io.BytesIO(recipe.encode()), "tag": "hbmcomm-test:other", "rm": True}
    other, _ = engine.images.build(**asked)
    try:
        with pytest.raises(ImageBuildFailed, match="this base is Other Linux 1: add --base"):
            guest_disk.ensure(
                engine, replace(image, base="hbmcomm-test:other", base_id=str(other.id))
            )
    finally:
        engine.images.remove("hbmcomm-test:other")


@pytest.mark.container
def test_its_engine_starts_however_long_the_path_of_the_checkout_is(
    engine: docker.DockerClient, tmp_path: Path
) -> None:
    """And the machine's own engine keeps its bridge."""
    with guest_disk.private_engine(tmp_path / ("long" * 25) / "docker") as private:
        assert private.images.list() == []
        assert private.info()["Driver"] == "overlay2"
    assert [network.name for network in engine.networks.list(names=["bridge"])] == ["bridge"]
    assert Path("/sys/class/net/docker0").exists()


@pytest.mark.container
@pytest.mark.timeout(600)
def test_it_is_made_once_and_found_again(
    engine: docker.DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = guest_disk.ensure(engine, image)
    lines: list[str] = []
    assert guest_disk.ensure(engine, image, lines.append) == made
    assert lines == []
    assert all(path.is_file() for path in (made.kernel, made.initramfs, made.image))
    assert made.image.stat().st_blocks * 512 < made.image.stat().st_size / 2  # mostly holes
    assert sorted(path.name for path in made.image.parent.parent.iterdir()) == sorted(
        (".lock", made.image.parent.name)
    )
    assert engine.images.list(filters={"dangling": True, "label": OURS}) == []


@pytest.mark.container
@pytest.mark.timeout(600)
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_is_reported_and_nothing_half_made_stays(
    engine: docker.DockerClient, image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "small", small], check=True)
    try:
        monkeypatch.setattr(guest_disk, "DISKS", small / "guest")
        with pytest.raises(Missing, match=r"could not be made.*df -h"):
            guest_disk.ensure(engine, image)
        assert [path.name for path in (small / "guest").iterdir()] == [".lock"]
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)
