"""The image's own layers: which they are, and that arms over them have the containers' inodes."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import docker
import pytest

from experiments.environments.userland import Userland
from experiments.provision import layers, passthrough
from experiments.provision.image import PREFIX, Image
from experiments.provision.layers import Unshared
from tests.launched import LAUNCH

LIBRARY = f"{PREFIX}/lib/libmpi.so.40"
CONTAINERD = (
    "701 640 0:60 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/c/9/fs:/c/8/fs:/c/7/fs:"
    "/c/6/fs,upperdir=/c/10/fs,workdir=/c/10/work\n"
    "702 701 0:63 / /proc rw,nosuid - proc proc rw\n"
)
"""Of a container of an image of three layers: its engine puts one of its own above them."""


def test_layers_of_an_image_are_the_lowest_of_its_container() -> None:
    expected = [Path("/c/8/fs"), Path("/c/7/fs"), Path("/c/6/fs")]
    assert layers.of_mount(CONTAINERD, 3) == expected
    with pytest.raises(Unshared, match=r"by fuse\.fuse-overlayfs, which is not an overlay"):
        layers.of_mount("1 0 0:1 / / rw - fuse.fuse-overlayfs fuse rw\n", 1)


def folders(place: Path, count: int) -> list[Path]:
    made = [place / f"{number:064d}" / "diff" for number in range(count)]
    (place / "l").mkdir(parents=True)
    for number, folder in enumerate(made):
        folder.mkdir(parents=True)
        (folder.parent / "link").write_text(f"{number:026d}")
        (place / "l" / f"{number:026d}").symlink_to(f"../{folder.parent.name}/diff")
    return made


def test_as_many_layers_as_an_image_may_have_fit_into_one_mount(tmp_path: Path) -> None:
    """More than a mount takes, and a layer that is gone, are left to a copy."""
    stack = layers.together(folders(tmp_path / "overlay2", 110), Path("/points"))
    assert stack.folder == tmp_path / "overlay2"
    assert stack.names[0] == f"l/{0:026d}" and stack.names[-1] == "/points"
    with pytest.raises(Unshared, match=r"140 layers in .* do not fit into one mount"):
        layers.together(folders(tmp_path / "more", 140), Path("/points"))
    with pytest.raises(Unshared, match="names a layer that is not there"):
        layers.together([tmp_path / "gone"], Path("/points"))


class Vfs:
    """As much of the SDK as is asked where the engine copies the image for each container."""

    attrs: ClassVar = {"GraphDriver": {"Name": "vfs"}, "RootFS": {"Layers": ["sha256:1"]}}

    @property
    def images(self) -> "Vfs":
        return self

    def get(self, name: str) -> "Vfs":
        return self

    def info(self) -> dict[str, object]:
        return {"Driver": "vfs", "DriverStatus": []}


IMAGE = Image("hbmcomm:openmpi", "sha256:1", "base", "3.11", "openmpi", "inputs", False)


def test_the_reason_why_layers_are_not_shared_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, why in (
        (0, "vfs gives each container files of its own"),
        (1000, "only root can read"),
    ):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(Unshared, match=why):
            layers.of(Vfs(), IMAGE)  # type: ignore[arg-type]


@pytest.mark.container
@pytest.mark.skipif(os.geteuid() != 0, reason="reading the engine's layers needs root")
def test_userland_runs_from_the_inodes_of_the_container(
    engine: docker.DockerClient, image: Image, tmp_path: Path
) -> None:
    """And writes nothing into them, has mount points, and honours no set-user-ID bit."""
    shared = layers.of(engine, image)
    at, machine = layers.mount_point(), passthrough.machine()
    command = Userland(
        at, PREFIX, 2, machine, {}, True, (str(shared.folder), shared.option)
    ).command(replace(LAUNCH, mpi="openmpi"), tmp_path)
    before = command.argv[: command.argv.index(f"{PREFIX}/bin/mpiexec")]
    asked = f"stat -c %i {LIBRARY}; touch /opt/new; ls -d /launch"
    done = subprocess.run(
        [*before, "sh", "-c", asked],
        env={"HBMCOMM_LAUNCH": "test", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    inside = engine.containers.run(image.id, ["stat", "-c", "%i", LIBRARY], remove=True)
    assert done.stdout.split() == [inside.decode().strip(), "/launch"]
    assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr
    assert not list(at.iterdir())
