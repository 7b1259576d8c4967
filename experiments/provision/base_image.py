"""The base of the image: one in the engine, else from a registry, else bootstrapped here.

Chooses so that host and container have the same minor version of Python. Builds nothing on top.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import docker
import requests
from docker.errors import APIError, ContainerError, ImageNotFound

from experiments.model.errors import Missing
from experiments.provision import bootstrap, distro_releases, removal
from experiments.provision.engine import FAILURES

AUTO, BOOTSTRAP = "auto", "bootstrap"
REGISTRY_PATIENCE = 5  # seconds for a registry to answer at all
PULL_PATIENCE = 120  # seconds of silence in the middle of a pull
OLDEST_MINOR = 11  # of Python 3

# Prints the version of an image's python3, else the suite that its python3 will come from.
ASK_PYTHON = (
    "python3 -c 'import sys; print(*sys.version_info[:2], sep=\".\")' 2>/dev/null "
    '|| { . /etc/os-release; echo "$VERSION_CODENAME"; }'
)


@dataclass(frozen=True)
class Base:
    """A base image in the engine.

    Attributes:
        reference: its name, which may be another image's tomorrow.
        python: the minor version for its ranks.
        digest: NAME@sha256:... by which its registry serves it; "" where none does.
    """

    reference: str
    id: str
    python: str
    digest: str = ""


def expected(choice: str) -> distro_releases.Suite | None:
    """The suite of a choice of base; None where only the image itself shows it."""
    wanted = distro_releases.with_python(distro_releases.host_python())
    if choice == AUTO:
        return wanted
    if choice == BOOTSTRAP:
        plan = bootstrap.recipe(wanted)
        return plan.suite if plan else None
    return next(
        (suite for suite in distro_releases.SUITES if choice in (suite.image, suite.bootstrapped)),
        None,
    )


def ensure(client: docker.DockerClient, choice: str, progress: Callable[[str], None]) -> Base:
    """The base image, pulled or made if the engine does not have it.

    Args:
        choice: "auto", "bootstrap", or the reference of an image.

    Raises:
        Missing: names what was tried.
    """
    wanted = distro_releases.with_python(distro_releases.host_python())
    if choice == BOOTSTRAP:
        return _bootstrapped(client, wanted, progress)
    if choice == AUTO:
        plan = bootstrap.recipe(wanted)
        base = _here(client, wanted.image, wanted.python)
        if base is None and not (plan and bootstrap.is_current(client, plan.suite)):
            base = _pulled(client, wanted.image, wanted.python, progress)
        return base or _bootstrapped(client, wanted, progress)
    base = _here(client, choice) or _pulled(client, choice, None, progress)
    if base is None:
        raise Missing(
            f"base image {choice}: not here, and no registry gives it; "
            "leave --base out, or make one here with --base bootstrap"
        )
    return base


def _here(client: docker.DockerClient, reference: str, python: str | None = None) -> Base | None:
    try:
        image = client.images.get(reference)
    except ImageNotFound:
        return None
    digest = digest_of(reference, image.attrs.get("RepoDigests") or ())
    return Base(reference, str(image.id), python or _python_of(client, reference), digest)


def digest_of(reference: str, digests: Iterable[str]) -> str:
    """The one of an image's digests that is of the same repository as its name; "" for none.

    Args:
        reference: NAME, NAME:TAG or NAME@sha256:...
        digests: NAME@sha256:... each; Podman writes the registry before the name.
    """
    if "@" in reference:
        return reference
    repository = re.sub(r":[^:/]*$", "", reference)
    same = (
        repo_digest
        for repo_digest in digests
        if f"/{repo_digest}".partition("@")[0].endswith(f"/{repository}")
    )
    return min(same, key=len, default="")


def _pulled(
    client: docker.DockerClient,
    reference: str,
    python: str | None,
    progress: Callable[[str], None],
) -> Base | None:
    """The image from its registry; None when that does not answer within a few seconds."""
    try:
        with _patience(client, REGISTRY_PATIENCE):
            client.images.get_registry_data(reference)
        progress(f"base: pulling {reference}")
        with _patience(client, PULL_PATIENCE):
            client.images.pull(reference)
    except FAILURES as error:
        progress(f"base: no registry gives {reference}: {_reason(error)}")
        return None
    return _here(client, reference, python)


def _bootstrapped(
    client: docker.DockerClient, wanted: distro_releases.Suite, progress: Callable[[str], None]
) -> Base:
    """The base that is made here, now or before."""
    plan = bootstrap.recipe(wanted)
    if plan is None:
        raise Missing(
            f"no base image: apt is not configured with a mirror of {wanted.distribution}; "
            "name an image that is here with --base IMAGE"
        )
    if not bootstrap.is_current(client, plan.suite):
        bootstrap.make(client, plan, progress)
    image = client.images.get(plan.suite.bootstrapped)
    return Base(plan.suite.bootstrapped, str(image.id), plan.suite.python)


def _python_of(client: docker.DockerClient, reference: str) -> str:
    """The minor version of Python that an image has, or gets from its distribution."""
    try:
        removal.remove_abandoned(client)
        answer = client.containers.run(
            reference,
            entrypoint=["sh", "-c", ASK_PYTHON],
            network_mode="none",
            labels=removal.own(),
            remove=True,
        )
    except (ContainerError, APIError) as error:
        raise Missing(
            f"base image {reference} does not run sh: {_reason(error)}; "
            "name a Debian or Ubuntu image"
        ) from error
    answered = answer.decode(errors="replace").strip()
    suite = distro_releases.named(answered)
    python = suite.python if suite else answered
    version = re.fullmatch(r"3\.(\d+)", python)
    if not version or int(version[1]) < OLDEST_MINOR:
        known = ", ".join(suite.image for suite in distro_releases.SUITES)
        raise Missing(
            f"base image {reference} offers Python '{answered}', 3.11 or later is needed; "
            f"name one such as {known}"
        )
    return python


@contextlib.contextmanager
def _patience(client: docker.DockerClient, seconds: int) -> Iterator[None]:
    """Set the timeout of the requests in the block."""
    usual = client.api.timeout
    client.api.timeout = seconds
    try:
        yield
    finally:
        client.api.timeout = usual


def _reason(error: Exception) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, APIError) and error.explanation:
        return str(error.explanation)
    return str(error)
