"""The layers of an image, where its engine keeps them: the files that its containers run from.

An overlay of them has the containers' own inodes, and so their pages of the page cache. A copy has
pages of its own, and the place of pages in memory alone makes calls of a microsecond up to 4 %
faster or slower, as long as they stay there.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from experiments.environments.process import FOLDER
from experiments.model.checkout import BUILD
from experiments.processes import scratch
from experiments.provision import removal
from experiments.provision.engine import FAILURES
from experiments.provision.image import Image

PLACE = BUILD / "layers"
POINTS = ("dev", "proc", "sys", "tmp", FOLDER.strip("/"))
"""Folders that something is mounted on; an image may lack them."""
LONGEST = 3500  # bytes of mount(2)'s options: a page at most, with words beside the layers
SPECIAL = ':,\\"'
"""Characters with a meaning in those options."""
IDLE = ("sleep", "60")
"""What a container does while its mount is looked at."""


@dataclass(frozen=True)
class Layers:
    """What mount(8) makes the image of.

    Attributes:
        folder: where the names begin.
        names: of the layers, the uppermost first; the last one has the mount points.
    """

    folder: Path
    names: tuple[str, ...]

    @property
    def option(self) -> str:
        """The option of an overlay that is mounted from within the folder."""
        return f"lowerdir={':'.join(self.names)}"


class Unshared(Exception):
    """Why the files of an image's containers cannot be had without one."""


def of(client: docker.DockerClient, image: Image) -> Layers:
    """The layers of an image.

    Raises:
        Unshared: in words that follow "because".
        EngineMissing, docker's errors: the engine does not answer.
    """
    if os.geteuid() != 0:
        raise Unshared("only root can read the engine's layers")
    attributes = client.images.get(image.id).attrs
    driver = attributes.get("GraphDriver") or {}
    if driver.get("Name") in ("overlay2", "overlay") and driver.get("Data"):
        layers = _of_overlay2(driver["Data"])
    elif "containerd" in json.dumps(client.info().get("DriverStatus") or ""):
        layers = _of_a_container(client, image.id, len(attributes["RootFS"]["Layers"]))
    else:
        raise Unshared(
            f"the engine's storage driver {client.info().get('Driver')} gives each container "
            "files of its own"
        )
    return together(layers, _mount_points())


def together(layers: Sequence[Path], lowest: Path) -> Layers:
    """Layers by names that fit into a mount's options.

    Args:
        layers: folders, the uppermost first.

    Raises:
        Unshared: there are too many, or one is not there.
    """
    for layer in layers:
        if not layer.is_dir():
            raise Unshared(f"the engine names a layer that is not there: {layer}")
    folder = Path(os.path.commonpath(layers)) if len(layers) > 1 else layers[0].parent
    names = [_short(layer, folder) for layer in layers] + [str(lowest)]
    text = ":".join(names)
    if len(text.encode()) > LONGEST or any(letter in SPECIAL for name in names for letter in name):
        raise Unshared(f"{len(layers)} layers in {folder} do not fit into one mount")
    return Layers(folder, tuple(names))


def of_mount(mountinfo: str, count: int) -> list[Path]:
    """The layers of an image under the root of one of its containers, the uppermost first.

    Args:
        mountinfo: of the container, from the machine's side; proc_pid_mountinfo(5).
        count: of the image's layers; the container's own are above them.

    Raises:
        Unshared: its root is no overlay.
    """
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if before.split(" ")[4] != "/":
            continue
        lower = [option for option in options.split(",") if option.startswith("lowerdir=")]
        if kind == "overlay" and lower:
            return [*map(Path, lower[0].removeprefix("lowerdir=").split(":"))][-count:]
        raise Unshared(
            f"the engine mounts its containers' files by {kind}, which is not an overlay"
        )
    raise Unshared("the engine's containers have no root that can be seen from here")


def _of_overlay2(data: Mapping[str, Any]) -> list[Path]:
    """From Docker's and Podman's description of an image."""
    lower = str(data.get("LowerDir") or "")
    return [Path(str(data["UpperDir"])), *(map(Path, lower.split(":")) if lower else ())]


def _of_a_container(client: docker.DockerClient, image: str, count: int) -> list[Path]:
    """From the mount of a container, where the engine does not describe layers."""
    removal.remove_abandoned(client)
    try:
        container = client.containers.run(
            image,
            [*IDLE],
            detach=True,
            network_mode="none",
            cap_drop=["ALL"],
            labels=removal.own(),
        )
    except FAILURES as error:
        raise Unshared(f"a container that would show them does not start: {error}") from error
    try:
        container.reload()
        process = container.attrs["State"]["Pid"]
        return of_mount(Path(f"/proc/{process}/mountinfo").read_text(encoding="utf-8"), count)
    except OSError as error:
        raise Unshared(f"a container's mounts cannot be read: {error.strerror}") from error
    finally:
        container.remove(force=True)


def _short(layer: Path, folder: Path) -> str:
    """A layer's name in the folder; Docker keeps shorter ones, as the layers may be many."""
    link = layer.parent / "link"
    shorter = folder / "l" / link.read_text(encoding="ascii").strip() if link.is_file() else layer
    return str((shorter if shorter.is_dir() else layer).relative_to(folder))


def _mount_points() -> Path:
    """A layer with nothing but folders that something is mounted on."""
    points = PLACE / "points"
    with scratch.locked(PLACE):
        PLACE.chmod(0o700)
        for folder in (mount_point(), *(points / name for name in POINTS)):
            folder.mkdir(parents=True, exist_ok=True)
    return points


def mount_point() -> Path:
    """The folder on which each launch mounts the layers, in a mount namespace of its own."""
    return PLACE / "root"
