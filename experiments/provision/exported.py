"""An image's files, out of the engine and into a folder. Starts nothing."""

import subprocess
from pathlib import Path
from typing import Any

import docker

from experiments.provision import removal


def tree(client: docker.DockerClient, image: str, folder: Path, owners: str) -> None:
    """Every file of an image but devices, into a folder that is there.

    Args:
        owners: tar's word for whose they are: "--no-same-owner", the caller's, or "--same-owner",
            as in the image, which needs root.

    Raises:
        OSError: the disk refuses; the engine's own failures as the SDK has them.
    """
    removal.remove_abandoned(client)
    container = client.containers.create(image, labels=removal.own())
    try:
        unpack = ["tar", "--extract", owners, "--exclude=dev/*", "--directory", str(folder)]
        with subprocess.Popen(unpack, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as tar:
            pipe: Any = tar.stdin
            for chunk in container.export():
                pipe.write(chunk)
            said = tar.communicate()[1].decode(errors="replace").strip()
        if tar.returncode:
            raise OSError(f"tar: {said}")
    finally:
        container.remove(force=True)
