"""Makes the disk of emulated machines' guests: a harness image, a kernel, an engine.

Docker's builder and mkfs.ext4 make it again when an input changes. The guest's engine gets its
images here, because loading them in the guest would take minutes. Boots nothing.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker

from experiments.emulation.qemu_command import Disk
from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import Missing
from experiments.processes import executables, scratch
from experiments.processes.executables import captured
from experiments.processes.files import digest
from experiments.provision import (
    base_image,
    building,
    distro_releases,
    dockerd,
    engine,
    image_files,
    seccomp,
)
from experiments.provision.bootstrap import STAGE_LABEL
from experiments.provision.image import CHECKOUT_LABEL, INPUTS_LABEL, Image, checkout

RECIPE = ROOT / "docker" / "guest"
DISKS = BUILD / "guest"
LOG = BUILD / "guest.log"
ENGINE_LOG = BUILD / "guest-dockerd.log"
WORKING = (
    "hbmcomm"  # the guest's working directory, with the files of the checkout that commands name
)
ENGINE_DATA = "var/lib/docker"
SIZE = "4G"  # of the file system; the file holds only what is written
MAKERS = (Path(__file__), Path(image_files.__file__))
"""The modules that make the disk; it is made again when they change."""
START_PATIENCE = 60  # seconds until a private engine answers


def refuse(base: str) -> None:
    """Raise Missing if no guest can be made on this choice of base."""
    suite = base_image.expected(base)
    if suite is not None and not suite.makes_guests:
        raise Missing(
            f"the guest of an emulated machine needs a Debian base, and base {base} would be "
            f"{suite.image} here; add --base {distro_releases.GUESTS.image}"
        )


def ensure(
    client: docker.DockerClient, image: Image, progress: Callable[[str], None] = print
) -> Disk:
    """The disk with a harness image, made if it is missing or out of date.

    Raises:
        Missing, ImageBuildFailed: each says what to do.
    """
    inputs = inputs_of(image)
    with scratch.locked(DISKS, say=progress):
        folder = DISKS / f"{image.variant}-{inputs}"
        if not folder.is_dir():
            _refuse_others(image)
            progress(f"guest: building its system for {image.tag}")
            try:
                with engine.required(
                    "the container engine failed while the guest's disk was made",
                    "see that it runs: ./inv doctor",
                ):
                    built = building.build(client, build_options(image, inputs), _recipe(), LOG)
                    with scratch.folder(DISKS, ".new-") as new:
                        _make(client, image, built, new, progress)
                        scratch.settle(new / "disk", folder)
                        scratch.remove_superseded(folder, new)
                    # older guest images of this checkout, which lost their name to a new one; not
                    # earlier: the new image itself may be nameless by now
                    ours = [f"{STAGE_LABEL}=guest", f"{CHECKOUT_LABEL}={checkout()}"]
                    client.images.prune(filters={"dangling": True, "label": ours})
            except OSError as error:
                raise Missing(
                    f"the guest's disk could not be made in {DISKS}: {error}; it takes some 2 GiB: "
                    "see that there is room (df -h)"
                ) from error
    return Disk(folder / "vmlinuz", folder / "initramfs", folder / "root.ext4", inputs)


def tag(mpi: str) -> str:
    """The name of the image that becomes the disk."""
    return f"hbmcomm:guest-{mpi}"


def inputs_of(image: Image) -> str:
    """A short hash of all that an image's disk depends on, but for the versions that apt has."""
    makers = [(path.name, path) for path in MAKERS]
    words = f"{image.id} {image.tag} {image.base} {seccomp.text()}"
    return digest(words.encode(), [*_recipe(), *makers])[:16]


def build_options(image: Image, inputs: str) -> dict[str, Any]:
    """The arguments of the engine's build, except for the context."""
    return {
        "tag": tag(image.mpi),
        "buildargs": {"IMAGE": image.id, "BASE": image.base_digest or image.base_id},
        "labels": {INPUTS_LABEL: inputs, CHECKOUT_LABEL: checkout()},
        "network_mode": "host",  # apt reaches the mirror as the host does
    }


def mkfs_command(tree: Path, image: Path) -> list[str]:
    """The command that makes a file system of a folder. No journal, because no write is kept."""
    return [
        *(executables.find("mkfs.ext4") or "mkfs.ext4", "-q", "-F", "-m", "0", "-L", "guest"),
        *("-O", "^has_journal", "-E", "lazy_itable_init=0,root_owner=0:0"),
        *("-d", str(tree), str(image), SIZE),
    ]


def _recipe() -> list[tuple[str, Path]]:
    return [(path.name, path) for path in sorted(RECIPE.iterdir())]


def _refuse_others(image: Image) -> None:
    """Raise if a program or root is missing, before a minute is spent on the disk."""
    for program, package in (
        ("mkfs.ext4", "e2fsprogs"),
        ("dockerd", "docker.io"),
        ("unshare", "util-linux"),
    ):
        if executables.find(program) is None:
            raise Missing(
                f"the guest's disk needs {program}, which is not installed; "
                f"sudo apt-get install -y {package}"
            )
    if os.geteuid() != 0:
        raise Missing(
            "the guest's disk is not made yet, and making it needs root (its files are root's); "
            "run this once as root: sudo ./inv vm --machine plain --check "
            f"--mpi {image.mpi} --base {image.base}"
        )


def _make(
    client: docker.DockerClient,
    image: Image,
    built: str,
    folder: Path,
    progress: Callable[[str], None],
) -> None:
    """Write kernel, initramfs and file system of the built image into folder/disk."""
    tree, disk = folder / "tree", folder / "disk"
    tree.mkdir()
    disk.mkdir()
    image_files.unpack(client, built, tree, "--same-owner")
    for name in ("vmlinuz", "initramfs"):
        _plain(tree, f"boot/{name}", image).rename(disk / name)
    rules = _plain(tree, f"{WORKING}/{seccomp.FILE.relative_to(ROOT)}", image)
    rules.parent.mkdir(parents=True)
    rules.write_text(seccomp.text(), encoding="utf-8")
    progress("guest: giving its engine the image")
    data = _plain(tree, ENGINE_DATA, image)
    if data.exists():  # the engine would follow links that the base image has there
        shutil.rmtree(data)
    _seed(client, image, data)
    progress("guest: making its disk")
    command = mkfs_command(tree, disk / "root.ext4")
    done = captured(command)
    if done.returncode:
        raise Missing(
            f"mkfs.ext4 failed: {done.stderr.strip()}; see that the disk has room (df -h)"
        )


def _plain(tree: Path, name: str, image: Image) -> Path:
    """A path in the guest's files as they were unpacked, which no link leads out of.

    Root writes there, and a base image may hold any link, which the host would follow.

    Raises:
        Missing: a part of the path is a link.
    """
    path = tree / name
    for part in reversed((path, *path.parents)):
        if part != tree and part.is_relative_to(tree) and part.is_symlink():
            raise Missing(
                f"the guest's disk cannot be made: /{part.relative_to(tree)} is a link to "
                f"{part.readlink()} in base {image.base}, and must be a plain file or folder; "
                "choose another --base"
            )
    return path


def _seed(client: docker.DockerClient, image: Image, data: Path) -> None:
    """Load an image into a folder that becomes the data folder of an engine."""
    with private_engine(data) as private:
        # streamed; by id, because another checkout may have taken the name by now
        archive: Any = client.images.get(image.id).save()
        (loaded,) = private.images.load(archive)
        repository, _, tag = image.tag.partition(":")
        loaded.tag(repository, tag)


@contextlib.contextmanager
def private_engine(data: Path) -> Iterator[docker.DockerClient]:
    """A client of a private engine over a data folder.

    Raises:
        Missing: the engine does not start.
    """
    with scratch.folder(scratch.SHORT, "hbmcomm-engine-") as folder:
        daemon = dockerd.start(ENGINE_LOG, dockerd.private_command(data, folder))
        try:
            client = engine.awaited(daemon, START_PATIENCE, f"unix://{folder}/socket")
            if client is None:
                why = dockerd.complaint(ENGINE_LOG)
                raise Missing(
                    f"the engine that fills the guest's disk does not start: {why}; "
                    f"read {ENGINE_LOG.parent.name}/{ENGINE_LOG.name}"
                )
            with contextlib.closing(client):
                yield client
        finally:
            dockerd.end(daemon)
