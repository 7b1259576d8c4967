"""Copies an image's files from the engine into a folder. Starts nothing."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import docker

from experiments.processes.captured import captured
from experiments.provision.images import removal

UMASK = 0o022  # ranks of root are another user, and read the files


def tree(client: docker.DockerClient, image: str, folder: Path, owners: str) -> None:
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
