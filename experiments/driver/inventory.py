"""What a campaign runs with, for a reader without the machine and the image.

Written once, when a campaign begins: images and engines into campaign.json, packages into
environment.json. What each launch found itself is in its own result.
"""

import hashlib
import io
import platform
import re
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import docker

from experiments.driver.backends import Backends
from experiments.emulation import description, qemu
from experiments.environments import runtime
from experiments.model.environment import DOCKER, EnvironmentId
from experiments.model.experiment import Experiment
from experiments.model.launch import FORMAT
from experiments.processes.executables import captured
from experiments.provision import engine, mpi_wheels, removal
from experiments.provision.engine import FAILURES
from experiments.provision.image import Image
from experiments.results.formats import FRESH, SHARED

NAME = "environment.json"
SYSTEM = (
    *(pattern for container_runtime in runtime.every() for pattern in container_runtime.packages),
    *("qemu-system-x86", "libmemkind0", "libhwloc*", "libnuma*", "*openmpi*", "*mpich*"),
    *("libfabric*", "libucx*", "libc6", "gcc", "python3", "mmdebstrap"),
)
"""Debian packages that containers, MPI and memory of the host come from, as dpkg's patterns."""
STATUS = "/var/lib/dpkg/status"


def recorded(experiment: Experiment, backends: Backends) -> dict[str, Any]:
    """The part of campaign.json that says what the arms run with, and what is missing."""
    containers: dict[str, dict[str, dict[str, str]]] = {}
    for (environment, flavour), image in backends.images.items():
        containers.setdefault(str(environment), {})[flavour] = {
            "image": image.id,
            "base": image.base,
            "base_digest": image.base_digest,
            "python": image.python,
            "inputs": image.inputs,
            "files": _files(environment, flavour, backends),
        }
    return {
        "containers": containers,
        "reference_files": {
            flavour: backends.own_files.get(flavour, FRESH)
            for flavour in (*backends.files, *backends.own_files)
        },
        "engines": {name: engine.parts(client) for name, client in backends.engines.items()},
        "emulated": emulated(experiment, backends),
        "missing": [f"{name}: {why}" for name, why in backends.missing.items()],
    }


def _files(environment: EnvironmentId, flavour: str, backends: Backends) -> str:
    """SHARED, or why an arm's files are other inodes than those of Docker's containers."""
    if environment == DOCKER:
        return SHARED
    if runtime.tree_of(environment):
        return backends.copied.get(flavour, SHARED)
    return f"{environment} keeps files of its own"


def emulated(experiment: Experiment, backends: Backends) -> dict[str, Any]:
    """The emulated machine, and what emulates it; empty where none does."""
    machine, flavour = experiment.machine, experiment.launches.mpis[0]
    if not machine:
        return {}
    guest = backends.guests[machine, flavour]
    return {
        "machine": machine,
        "description": described(machine),
        "accelerator": guest.accelerator,
        "qemu": qemu.version(),
        "disk": guest.disk.id,
    }


def described(machine: str) -> dict[str, Any]:
    """The description of an emulated machine, as JSON holds it."""
    return description.load(machine).model_dump(mode="json")


def inventory(experiment: Experiment, backends: Backends, python: str = "") -> dict[str, Any]:
    """The packages of driver, ranks and system, and the recipe of each MPI's image.

    Args:
        python: folder of an environment that the site provides for the ranks; "" for our own.
    """
    images: dict[str, dict[str, Any]] = {}
    for (environment, flavour), image in backends.images.items():
        client = backends.clients.get(environment)
        if client or flavour not in images:
            images[flavour] = _image(image, client)
    return {
        "format": FORMAT,
        "system": {"python": platform.python_version(), "packages": system_packages()},
        "driver": mpi_wheels.distributions(Path(sys.prefix)),
        "mpis": {
            flavour: mpi_wheels.distributions(
                Path(python) if python else mpi_wheels.prefix(flavour)
            )
            for flavour in experiment.launches.mpis
            if not experiment.machine
        },
        "images": images,
    }


def _image(image: Image, client: docker.DockerClient | None) -> dict[str, Any]:
    return {
        "image": image.id,
        "base": image.base,
        "base_image": image.base_id,
        "base_digest": image.base_digest,
        "inputs": image.inputs,
        "dockerfile": image.dockerfile,
        "wheels": {
            wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in image.wheels
        },
        "packages": image_packages(client, image.id) if client else {},
    }


def system_packages(patterns: Iterable[str] = SYSTEM) -> dict[str, str]:
    """{package: version} on this machine, of those that the patterns name; empty without dpkg."""
    form = "${db:Status-Status} ${Package} ${Version}\n"
    command = ["dpkg-query", "--show", f"--showformat={form}", *patterns]
    try:
        done = captured(command)
    except OSError:
        return {}
    rows = (line.split(" ") for line in done.stdout.splitlines())
    return {row[1]: row[2] for row in rows if row[0] == "installed"}


def image_packages(client: docker.DockerClient, image: str) -> dict[str, str]:
    """{Debian package: version} in an image, empty without dpkg; starts nothing in it."""
    try:
        removal.remove_abandoned(client)
        container = client.containers.create(image, labels=removal.own())
        try:
            chunks, _ = container.get_archive(STATUS)
            packed = io.BytesIO(b"".join(chunks))
        finally:
            container.remove(force=True)
    except FAILURES:
        return {}
    with tarfile.open(fileobj=packed) as tar:
        status = tar.extractfile(tar.getmembers()[0])
        return _from_status(status.read().decode(errors="replace")) if status else {}


def _from_status(text: str) -> dict[str, str]:
    """The installed packages in dpkg's status file."""
    packages = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Status): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return packages
