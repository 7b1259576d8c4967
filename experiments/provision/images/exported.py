"""An image's files, out of the engine and into a folder. Starts nothing."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import docker

from experiments.provision.images import removal


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
        devices = ("--anchored", "--exclude=dev/*")  # not what lies in folders of that name below
        unpack = ["tar", "--extract", owners, *devices, "--directory", str(folder)]
        # what it says goes to a file: on a full disk that is a line for every file, and a pipe that
        # nobody reads would stop it
        with tempfile.TemporaryFile() as said:
            with subprocess.Popen(unpack, stdin=subprocess.PIPE, stderr=said) as tar:
                pipe: Any = tar.stdin
                for chunk in container.export():
                    pipe.write(chunk)
            said.seek(0)
            first = said.readline().decode(errors="replace").strip()
        if tar.returncode:
            raise OSError(first or f"tar ended with {tar.returncode}")
    finally:
        container.remove(force=True)
