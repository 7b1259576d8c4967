"""A base image made on this machine by mmdebstrap, from the mirror that apt is configured with.

Knows when an existing one is up to date; does not know when one is needed.
"""

import contextlib
import hashlib
import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker

from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import executables, scratch
from experiments.processes.files import last_lines
from experiments.provision import building, distro_releases
from experiments.provision.distro_releases import Suite

PROGRAM = "mmdebstrap"
HOOKS = "/usr/share/mmdebstrap/hooks"
INCLUDE = ("python3", "python3-venv")
MEMKIND = "libmemkind0"
CLEAN = (
    'for each in doc info locale man; do rm -rf "$1/usr/share/$each"/*; done; '
    'rm -rf "$1"/var/cache/debconf/*-old "$1"/var/log/*'
)
"""A hook in shell, with the root file system as its argument: removes what no container reads."""
LOG = BUILD / "bootstrap.log"
SCRATCH = Path("/var/tmp")  # /tmp can be mounted nodev, and mmdebstrap makes device files
RECIPE_LABEL = "hbmcomm.bootstrap"
STAGE_LABEL = "hbmcomm.stage"


@dataclass(frozen=True)
class Recipe:
    """A suite that can be bootstrapped here, and its mirror."""

    suite: Suite
    mirror: str


def recipe(wanted: Suite, etc: Path = distro_releases.ETC_APT) -> Recipe | None:
    """The wanted suite where apt's mirrors hold its distribution, else the host's own suite.

    None where apt is configured for neither. A distribution keeps all its suites on one mirror.
    """
    host: dict[str, str] = {}
    with contextlib.suppress(OSError):
        host = platform.freedesktop_os_release()
    own = host.get("VERSION_CODENAME", "")
    own_suite, own_mirror = distro_releases.named(own), distro_releases.mirror(own, etc)
    holds_all = host.get("ID") == wanted.distribution
    if mirror := distro_releases.mirror(wanted.name, etc) or (own_mirror if holds_all else None):
        return Recipe(wanted, mirror)
    return Recipe(own_suite, own_mirror) if own_suite and own_mirror else None


def is_current(client: docker.DockerClient, suite: Suite) -> bool:
    """Whether the engine holds the suite as this module makes it."""
    return bool(building.labelled(client, suite.bootstrapped, RECIPE_LABEL, _hash(suite)))


def make(client: docker.DockerClient, plan: Recipe, progress: Callable[[str], None]) -> None:
    """Make the suite's root file system and import it as plan.suite.bootstrapped.

    Raises:
        Missing: mmdebstrap or, without root, newuidmap is not installed; mmdebstrap fails.
    """
    _check_installed()
    progress(f"base: bootstrapping {plan.suite.name} from apt's mirror")
    with scratch.folder(SCRATCH, "hbmcomm-base-") as folder:
        folder.chmod(0o711)  # without root, mmdebstrap works under another user ID
        tar = folder / "base.tar"
        _bootstrap(plan, tar)
        progress(f"base: importing it as {plan.suite.bootstrapped}")
        _import(client, tar, plan.suite)


def command(plan: Recipe, tar: Path) -> list[str]:
    """The command that writes the suite's root file system into a tar file."""
    suite = plan.suite
    components = ("main", "universe") if suite.distribution == "ubuntu" else ("main",)
    packages = (*INCLUDE, MEMKIND) if suite.has_memkind else INCLUDE
    hooks = [f"--hook-dir={HOOKS}/maybe-merged-usr", f"--customize-hook={CLEAN}"]
    mirror = plan.mirror
    if mirror.startswith("file:"):
        mirror = f"file:///{mirror.removeprefix('file:').lstrip('/')}"
        hooks.append(f"--hook-dir={HOOKS}/file-mirror-automount")
    return [
        PROGRAM,
        "--variant=minbase",
        f"--components={','.join(components)}",
        f"--include={','.join(packages)}",
        *hooks,
        suite.name,
        str(tar),
        mirror,
    ]


def _check_installed() -> None:
    """Refuse to start without the programs that are needed here."""
    lacking = [] if executables.find(PROGRAM) else [PROGRAM]
    if os.geteuid() != 0 and executables.find("newuidmap") is None:
        lacking.append("uidmap")  # the package of newuidmap
    if lacking:
        raise Missing(
            f"no registry gives a base image, and making one here needs {' and '.join(lacking)}; "
            f"sudo apt-get install -y {' '.join(lacking)}"
        )


def _bootstrap(plan: Recipe, tar: Path) -> None:
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("wb") as log:
        done = subprocess.run(
            command(plan, tar),
            env=os.environ | {"TMPDIR": str(tar.parent)},  # what a killed one leaves goes with it
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise Missing(
            f"bootstrapping {plan.suite.name} failed: {''.join(last_lines(LOG, 1))}; "
            f"read {LOG.parent.name}/{LOG.name}, or name an image that is here with --base"
        )


def _import(client: docker.DockerClient, tar: Path, suite: Suite) -> None:
    labels = [f"LABEL {RECIPE_LABEL}={_hash(suite)}", f"LABEL {STAGE_LABEL}=base"]
    # name and tag in one: Podman overlooks a tag that is given by itself
    answer = client.api.import_image_from_file(
        str(tar), repository=suite.bootstrapped, changes=labels
    )
    if '"error"' in answer:
        raise Missing(f"importing the base image failed: {answer.strip()}; is the disk full? df -h")


def _hash(suite: Suite) -> str:
    """Identifies how a suite is made; the mirror is not part of it."""
    words = command(Recipe(suite, "http://mirror"), Path("base.tar"))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
