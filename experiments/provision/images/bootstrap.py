"""A base image made here by debootstrap, from the mirror that apt is configured with.

Knows when the one that lies here is still right; does not know when one is needed.
"""

import hashlib
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import ImageNotFound

from experiments.model.checkout import BUILD, ROOT
from experiments.model.errors import ExperimentsError
from experiments.processes import executables, scratch
from experiments.provision.packages import apt_sources, distro_releases
from experiments.provision.packages.distro_releases import Suite

SCRIPT = ROOT / "docker" / "bootstrap.sh"
LOG = BUILD / "bootstrap.log"
SCRATCH = Path("/var/tmp")  # debootstrap needs a place that is not mounted nodev, as /tmp can be
SCRIPT_LABEL = "hbmcomm.bootstrap"
STAGE_LABEL = "hbmcomm.stage"


class BaseMissing(ExperimentsError):
    """No base image can be had; the text says what was tried and the one thing to do."""


@dataclass(frozen=True)
class Recipe:
    """Which suite can be bootstrapped here, and from where."""

    suite: Suite
    mirror: str


def recipe(wanted: Suite, etc: Path = apt_sources.ETC_APT) -> Recipe | None:
    """The wanted suite where apt's mirrors hold its distribution, else the host's own suite.

    None where apt is configured for neither. A distribution keeps all its suites on one mirror.
    """
    host = _os_release()
    mirror = apt_sources.mirror(wanted.name, etc)
    own = host.get("VERSION_CODENAME", "")
    if mirror is None and host.get("ID") == wanted.distribution:
        mirror = apt_sources.mirror(own, etc)
    if mirror is not None:
        return Recipe(wanted, mirror)
    own_suite, own_mirror = distro_releases.named(own), apt_sources.mirror(own, etc)
    return Recipe(own_suite, own_mirror) if own_suite and own_mirror else None


def is_current(client: docker.DockerClient, suite: Suite) -> bool:
    """Whether the engine holds the suite as today's script would make it."""
    try:
        image = client.images.get(suite.bootstrapped)
    except ImageNotFound:
        return False
    return bool(image.labels.get(SCRIPT_LABEL) == _script_hash())


def make(client: docker.DockerClient, plan: Recipe, progress: Callable[[str], None]) -> None:
    """Bootstrap and import it as plan.suite.bootstrapped.

    Raises:
        BaseMissing: without debootstrap, without root, or with its last line.
    """
    if executables.find("debootstrap") is None:
        raise BaseMissing(
            "no registry gives a base image and debootstrap, which makes one, is not installed; "
            "sudo apt-get install -y debootstrap"
        )
    if os.geteuid() != 0:
        raise BaseMissing(
            "no registry gives a base image, and making one needs root; "
            "run the same command once as root: sudo ./inv build --base bootstrap"
        )
    progress(f"base: bootstrapping {plan.suite.name} from apt's mirror")
    with scratch.folder(SCRATCH, "hbmcomm-base-") as target:
        _debootstrap(plan, target)
        progress(f"base: importing it as {plan.suite.bootstrapped}")
        _import(client, target, plan.suite)


def command(plan: Recipe, target: Path) -> list[str]:
    """The command that fills target with the suite's root file system; needs root."""
    return ["sh", str(SCRIPT), plan.suite.name, plan.mirror, str(target)]


def _debootstrap(plan: Recipe, target: Path) -> None:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        done = subprocess.run(
            command(plan, target),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        said = LOG.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
        raise BaseMissing(
            f"bootstrapping {plan.suite.name} failed: {said[-1]}; "
            f"read {LOG.parent.name}/{LOG.name}, or name an image that is here with --base"
        )


def _import(client: docker.DockerClient, target: Path, suite: Suite) -> None:
    """Stream the tree into the engine, without a tar file on the disk."""
    labels = [f"LABEL {SCRIPT_LABEL}={_script_hash()}", f"LABEL {STAGE_LABEL}=base"]
    tar = ["tar", "--directory", str(target), "--numeric-owner", "--create", "."]
    with subprocess.Popen(tar, stdout=subprocess.PIPE) as packing:
        # name and tag in one: Podman overlooks a tag that is given by itself
        answer = client.api.import_image_from_stream(
            packing.stdout, repository=suite.bootstrapped, changes=labels
        )
    if packing.returncode != 0 or '"error"' in answer:
        raise BaseMissing(
            f"importing the base image failed: {answer.strip()}; is the disk full? df -h"
        )


def _script_hash() -> str:
    return hashlib.sha256(SCRIPT.read_bytes()).hexdigest()[:16]


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
