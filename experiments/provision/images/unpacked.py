"""The image as a plain folder, for runtimes that need no engine: Charliecloud and Apptainer.

One folder for each image of a checkout, made again when the image changes; complete or missing.
No other user reaches them; they hold no set-user-ID file.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import docker

from experiments.environments.docker import FOLDER
from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import scratch
from experiments.processes.whole_file import whole_file
from experiments.provision.engines.engine import FAILURES
from experiments.provision.images import exported
from experiments.provision.images.image import Image

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
            exported.tree(client, image.id, incoming, "--no-same-owner")
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
