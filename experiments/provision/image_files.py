"""The image as a plain folder, for runtimes that need no engine: Charliecloud and Apptainer.

One folder for each image of a checkout, made again when the image changes; complete or missing.
No other user reaches them; they hold no set-user-ID file.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import docker

from experiments.environments.process import FOLDER
from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.processes.executables import captured
from experiments.processes.files import whole_file
from experiments.provision import removal
from experiments.provision.engine import FAILURES
from experiments.provision.image import Image

UMASK = 0o022  # ranks of root are another user, and read the files


def unpack(client: docker.DockerClient, image: str, folder: Path, owners: str) -> None:
    """Copy all files of an image, except for devices, into an existing folder of this user alone.

    No file keeps its set-user-ID or set-group-ID bit: any user here could run root's.

    Args:
        owners: tar's option for their owner: "--no-same-owner", the caller, or "--same-owner", as
            in the image, which needs root.

    Raises:
        OSError: writing fails. Failures of the engine are the SDK's errors.
    """
    removal.remove_abandoned(client)
    container = client.containers.create(image, labels=removal.own())
    try:
        devices = ("--anchored", "--exclude=dev/*")  # dev at the top only
        modes = "--no-same-permissions"  # less the umask and those bits, also where root unpacks
        unpack = ["tar", "--extract", owners, modes, *devices, "--directory", str(folder)]
        # tar's errors go to a file: on a full disk there is one for every file, and a full pipe
        # would stop tar
        with tempfile.TemporaryFile() as errors:
            with subprocess.Popen(unpack, stdin=subprocess.PIPE, stderr=errors, umask=UMASK) as tar:
                pipe: Any = tar.stdin
                for chunk in container.export():
                    pipe.write(chunk)
            errors.seek(0)
            first = errors.readline().decode(errors="replace").strip()
        if tar.returncode:
            raise OSError(first or f"tar ended with {tar.returncode}")
        _remove_devices(folder)
    finally:
        container.remove(force=True)


def _remove_devices(folder: Path) -> None:
    """Remove device files, which tar has no option to leave out; as root it makes them.

    Raises:
        OSError: find fails.
    """
    devices = ("-xdev", "(", "-type", "b", "-o", "-type", "c", ")", "-delete")
    done = captured(["find", str(folder), *devices])
    if done.returncode:
        raise OSError(done.stderr.strip() or f"find ended with {done.returncode}")


TREES = BUILD / "unpacked"


def folder(variant: str) -> Path:
    """The folder of an image, which may not exist yet."""
    return TREES / variant


def ensure(client: docker.DockerClient, image: Image, progress: Callable[[str], None]) -> Path:
    """The folder with the image's files and a mount point for a launch's folder, up to date.

    Raises:
        Missing: the engine or the disk refuses.
    """
    tree = folder(image.variant)
    stamp = _stamp(tree)
    with scratch.locked(TREES, say=progress):
        TREES.chmod(0o700)
        if stamp.is_file() and json.loads(stamp.read_text(encoding="utf-8"))["id"] == image.id:
            return tree
        progress(f"image: unpacking {image.tag}")
        incoming = tree.with_suffix(".incoming")
        shutil.rmtree(incoming, ignore_errors=True)
        try:
            incoming.mkdir()
            # they belong to this user, root included: no other reads them, and ranks are never root
            unpack(client, image.id, incoming, "--no-same-owner")
            (incoming / FOLDER.strip("/")).mkdir()
        except (*FAILURES, OSError) as error:
            shutil.rmtree(incoming, ignore_errors=True)
            raise Missing(
                f"{image.tag} could not be unpacked to {tree}: {error}; see that the engine runs "
                "(./inv doctor) and the disk has room (df -h)"
            ) from error
        stamp.unlink(missing_ok=True)
        shutil.rmtree(tree, ignore_errors=True)
        incoming.rename(tree)
        with whole_file(stamp) as described:
            described.write(json.dumps(asdict(image), default=str).encode())
    return tree


def recall(variant: str) -> Image:
    """The image that a folder was made of, where no engine is at hand to ask.

    Raises:
        Missing: there is none.
    """
    try:
        text = _stamp(folder(variant)).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise Missing(
            f"the image {variant} is not unpacked in {TREES}: start the campaign on a machine with "
            "Docker that has the same folders, or name an image in [SITE.images] of sites.toml"
        ) from error
    stored = json.loads(text)
    return Image(**stored | {"wheels": tuple(map(Path, stored["wheels"]))})


def _stamp(tree: Path) -> Path:
    """The file that describes the image that a folder is complete of."""
    return tree.with_suffix(".json")
