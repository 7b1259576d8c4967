"""A campaign's containers and networks, found by their label, removed from an engine.

Knows no launch: removes everything with the label, and containers that were made to look into an
image once their maker is gone.
"""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import docker
import requests
from docker.errors import APIError, NotFound

from experiments.environments.docker import LABEL
from experiments.processes import scratch
from experiments.provision import engine
from experiments.provision.engine import EngineMissing

MAKER = "hbmcomm.maker"
"""Label of a container outside campaigns; its value is the process that made it."""
POLL = 0.2  # seconds


def remove(client: docker.DockerClient, campaign: str) -> list[str]:
    """End and remove every container of a campaign, then its networks; their names.

    Raises:
        EngineMissing: when the engine does not answer; it names the command that does the same.
    """
    label = f"{LABEL}={campaign}"
    with engine.required(*_left(label, "the engine failed")):
        return [*map(_end, _containers(client, label)), *_networks(client, label)]


def remove_late(
    connect: Callable[[], docker.DockerClient | None],
    campaign: str,
    patience: float,
    settle: float,
) -> list[str]:
    """Repeat remove() until no container appears for a while: a request outlives its sender.

    Args:
        connect: returns a client, which the caller closes; None while the engine does not answer.
        patience: seconds for the engine to do it.
        settle: seconds without a new container after which none is expected.

    Raises:
        EngineMissing: the engine did not; names what may be left and the command that removes it.
    """
    removed: list[str] = []
    left, silent_since = _left(f"{LABEL}={campaign}", "no container engine answers"), None
    failure = EngineMissing(*left)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        client = connect()
        try:
            came = remove(client, campaign) if client else None
        except EngineMissing as error:
            came, failure = None, error
        removed += came or []
        now = time.monotonic()
        silent_since = (silent_since or now) if came == [] else None
        if silent_since and now - silent_since > settle:
            return removed
        time.sleep(POLL)
    raise failure


def own() -> dict[str, str]:
    """The label of a container that is removed after this process has ended."""
    return {MAKER: scratch.maker()}


def remove_abandoned(client: docker.DockerClient) -> list[str]:
    """Remove containers that killed processes made outside campaigns; their names.

    Raises:
        EngineMissing: the engine does not answer; names the command that does the same.
    """
    with engine.required(*_left(MAKER, "the engine failed")):
        every = _containers(client, MAKER)
        return [_end(container) for container in every if scratch.is_gone(container.labels[MAKER])]


def _left(label: str, reason: str) -> tuple[str, str]:
    """What may be left, and the command that removes it."""
    return (
        f"containers may be left, {reason}",
        f"docker rm -f $(docker ps -aq --filter label={label})",
    )


def _containers(client: docker.DockerClient, label: str) -> list[Any]:
    containers: list[Any] = client.containers.list(
        all=True, filters={"label": label}, ignore_removed=True
    )
    return containers


def _end(container: Any) -> str:
    """End and remove a container that another process may be removing already; its name."""
    with contextlib.suppress(NotFound):
        try:
            container.remove(force=True, v=True)
        except APIError as error:
            if error.status_code != requests.codes.conflict:
                raise
    return str(container.name)


def _networks(client: docker.DockerClient, label: str) -> list[str]:
    removed = []
    for network in client.networks.list(filters={"label": label}):
        with contextlib.suppress(NotFound):
            network.remove()
            removed.append(str(network.name))
    return removed
