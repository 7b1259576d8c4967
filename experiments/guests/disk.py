"""The disk that an emulated machine's guest starts from: a harness image, a kernel, an engine.

Made by Docker's builder and mkfs.ext4, kept until what goes into it changes. The guest's engine is
given its images here: loading them in the guest would take minutes. Boots nothing.
"""

import contextlib
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException

from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import ExperimentsError
from experiments.processes import executables, scratch
from experiments.provision.engines import dockerd
from experiments.provision.engines.engine import FAILURES, EngineMissing
from experiments.provision.images import base_image, building, exported, seccomp
from experiments.provision.images.bootstrap import STAGE_LABEL
from experiments.provision.images.image import CHECKOUT_LABEL, INPUTS_LABEL, Image, checkout
from experiments.provision.packages import distro_releases

RECIPE = ROOT / "docker" / "guest"
DISKS = BUILD / "guest"
LOG = BUILD / "guest.log"
ENGINE_LOG = BUILD / "guest-dockerd.log"
WORKING = "hbmcomm"  # the guest's working directory; below it lies what of the checkout is named
ENGINE_DATA = "var/lib/docker"
SIZE = "4G"  # of the file system; the file holds only what is written
MAKERS = (Path(__file__), Path(exported.__file__))
"""What is done with the recipe's image: the disk is another one when these are."""
START_PATIENCE = 60  # seconds until a private engine answers
POLL = 0.1  # seconds


class GuestMissing(ExperimentsError):
    """The disk cannot be made; the text says why and the one thing to do."""


@dataclass(frozen=True)
class Disk:
    """What a guest boots from.

    Attributes:
        image: of an ext4 file system, raw.
        id: tells what went into it.
    """

    kernel: Path
    initramfs: Path
    image: Path
    id: str


def refuse(base: str) -> None:
    """Raise GuestMissing where no guest can be made on this choice of base."""
    suite = base_image.expected(base)
    if suite is not None and not suite.makes_guests:
        raise GuestMissing(
            f"the guest of an emulated machine stands on Debian, and base {base} would be "
            f"{suite.image} here; add --base {distro_releases.GUESTS.image}"
        )


def ensure(
    client: docker.DockerClient, image: Image, progress: Callable[[str], None] = print
) -> Disk:
    """The disk with a harness image, as it should be today.

    Raises:
        GuestMissing, ImageBuildFailed, EngineMissing: each says what to do.
    """
    inputs = inputs_of(image)
    with scratch.alone(DISKS):
        folder = DISKS / f"{image.mpi}-{inputs}"
        if not folder.is_dir():
            _refuse_others(image)
            progress(f"guest: building its system for {image.tag}")
            try:
                built = building.build(client, build_options(image, inputs), _recipe(), LOG)
                with scratch.folder(DISKS, ".new-") as place:
                    _make(client, image, built, place, progress)
                    scratch.settle(place / "disk", folder)
                    scratch.remove_superseded(folder, place)
                _remove_superseded(client)  # not before: what was built may be nameless by now
            except FAILURES as error:
                raise EngineMissing(
                    f"the container engine failed while the guest's disk was made: {error}",
                    "see that it runs: ./inv doctor",
                ) from error
            except OSError as error:
                raise GuestMissing(
                    f"the guest's disk could not be made in {DISKS}: {error}; it takes some 2 GiB: "
                    "see that there is room (df -h)"
                ) from error
    return Disk(folder / "vmlinuz", folder / "initramfs", folder / "root.ext4", inputs)


def tag(mpi: str) -> str:
    """The name of the image that the disk is made of."""
    return f"hbmcomm:guest-{mpi}"


def inputs_of(image: Image) -> str:
    """What the disk with a harness image is known by today."""
    makers = [(path.name, path) for path in MAKERS]
    return inputs_hash(image, [*_recipe(), *makers], seccomp.text())


def inputs_hash(image: Image, files: list[tuple[str, Path]], rules: str) -> str:
    """Changes when the disk would, but for newer versions that apt may have.

    Short, for a file's name.

    Args:
        files: name and file of everything that decides how it is made.
        rules: what it holds of the checkout.
    """
    digest = hashlib.sha256(f"{image.id} {image.tag} {image.base} {rules}".encode())
    for name, path in files:
        digest.update(f"\0{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def build_options(image: Image, inputs: str) -> dict[str, Any]:
    """What the engine's build is asked for, the context apart. Pure."""
    return {
        "tag": tag(image.mpi),
        "buildargs": {"IMAGE": image.id, "BASE": image.base},
        "labels": {INPUTS_LABEL: inputs, CHECKOUT_LABEL: checkout()},
        "network_mode": "host",  # apt reaches the mirror as the host does
    }


def mkfs_command(tree: Path, image: Path) -> list[str]:
    """The command that makes a file system of a folder. No journal: nothing written is kept."""
    return [
        *(executables.find("mkfs.ext4") or "mkfs.ext4", "-q", "-F", "-m", "0", "-L", "guest"),
        *("-O", "^has_journal", "-E", "lazy_itable_init=0,root_owner=0:0"),
        *("-d", str(tree), str(image), SIZE),
    ]


def _recipe() -> list[tuple[str, Path]]:
    return [(path.name, path) for path in sorted(RECIPE.iterdir())]


def _remove_superseded(client: docker.DockerClient) -> None:
    """Remove this checkout's older images of guests, which a new one has left nameless."""
    ours = [f"{STAGE_LABEL}=guest", f"{CHECKOUT_LABEL}={checkout()}"]
    client.images.prune(filters={"dangling": True, "label": ours})


def _refuse_others(image: Image) -> None:
    """Say what lacks before a minute is spent on the disk."""
    for program, package in (
        ("mkfs.ext4", "e2fsprogs"),
        ("dockerd", "docker.io"),
        ("unshare", "util-linux"),
    ):
        if executables.find(program) is None:
            raise GuestMissing(
                f"the guest's disk needs {program}, which is not installed; "
                f"sudo apt-get install -y {package}"
            )
    if os.geteuid() != 0:
        raise GuestMissing(
            "the guest's disk is not made yet, and making it needs root (its files are root's); "
            "run this once as root: sudo ./inv vm --machine plain --check "
            f"--mpi {image.mpi} --base {image.base}"
        )


def _make(
    client: docker.DockerClient,
    image: Image,
    built: str,
    place: Path,
    progress: Callable[[str], None],
) -> None:
    """Kernel, initramfs and file system of what was built of an image, into place/disk."""
    tree, disk = place / "tree", place / "disk"
    tree.mkdir()
    disk.mkdir()
    exported.tree(client, built, tree, "--same-owner")
    for name in ("vmlinuz", "initramfs"):
        (tree / "boot" / name).rename(disk / name)
    rules = tree / WORKING / seccomp.FILE.relative_to(ROOT)
    rules.parent.mkdir(parents=True)
    rules.write_text(seccomp.text(), encoding="utf-8")
    progress("guest: giving its engine the image")
    _seed(client, image, tree / ENGINE_DATA)
    progress("guest: making its disk")
    command = mkfs_command(tree, disk / "root.ext4")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GuestMissing(
            f"mkfs.ext4 failed: {done.stderr.strip()}; see that the disk has room (df -h)"
        )


def _seed(client: docker.DockerClient, image: Image, data: Path) -> None:
    """An image into a folder that an engine takes for its own."""
    with private_engine(data) as private:
        # streamed, never whole; without its name, which another checkout may have taken by now
        archive: Any = client.images.get(image.id).save()
        (loaded,) = private.images.load(archive)
        repository, _, tag = image.tag.partition(":")
        loaded.tag(repository, tag)


@contextlib.contextmanager
def private_engine(data: Path) -> Iterator[docker.DockerClient]:
    """A client of an engine of our own over a folder of images, which it makes if need be.

    Raises:
        GuestMissing: it does not start.
    """
    with scratch.folder(scratch.SHORT, "hbmcomm-engine-") as place:
        daemon = dockerd.start(ENGINE_LOG, dockerd.private_command(data, place))
        try:
            with contextlib.closing(_answered(f"unix://{place}/socket", daemon)) as client:
                yield client
        finally:
            dockerd.end(daemon)


def _answered(address: str, daemon: dockerd.Process) -> docker.DockerClient:
    deadline = time.monotonic() + START_PATIENCE
    while time.monotonic() < deadline and daemon.poll() is None:
        try:
            return docker.DockerClient(base_url=address, version="auto", timeout=START_PATIENCE)
        except DockerException:
            time.sleep(POLL)
    raise GuestMissing(
        f"the engine that fills the guest's disk does not start: {dockerd.complaint(ENGINE_LOG)}; "
        f"read {ENGINE_LOG.parent.name}/{ENGINE_LOG.name}"
    )
