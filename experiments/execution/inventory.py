"""environment.json: what a campaign ran with, for a reader who has neither machine nor image.

Written once, when a campaign begins. What each launch found itself is in its own result.
"""

import hashlib
import platform
import sys
from pathlib import Path
from typing import Any

import docker

from experiments.execution.backends import Equipment
from experiments.model.environment import machine_of
from experiments.model.experiment import Experiment
from experiments.model.launch import FORMAT
from experiments.provision.images import installed
from experiments.provision.images.image import Image
from experiments.provision.wheels import mpi

NAME = "environment.json"


def inventory(experiment: Experiment, found: Equipment) -> dict[str, Any]:
    """The packages of driver, ranks and system, and the recipe of each MPI's image."""
    on_host = not all(map(machine_of, experiment.launches.environments))
    images: dict[str, dict[str, Any]] = {}
    for (environment, flavour), image in found.images.items():
        client = found.clients.get(environment)
        if client or flavour not in images:
            images[flavour] = _image(image, client)
    return {
        "format": FORMAT,
        "system": {"python": platform.python_version(), "packages": installed.of_system()},
        "driver": installed.of_python(Path(sys.prefix)),
        "mpis": {
            flavour: installed.of_python(mpi.prefix(flavour))
            for flavour in experiment.launches.mpis
            if on_host
        },
        "images": images,
    }


def _image(image: Image, client: docker.DockerClient | None) -> dict[str, Any]:
    return {
        "image": image.id,
        "base": image.base,
        "base_image": image.base_id,
        "inputs": image.inputs,
        "dockerfile": image.dockerfile,
        "wheels": {wheel.name: _sha256(wheel) for wheel in image.wheels},
        "packages": installed.of_image(client, image.id) if client else {},
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
