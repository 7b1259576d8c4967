"""Containers in an engine for as long as a block lasts: made, started, and removed in every ending.

Knows neither log files nor the ends that they come to: that is execute.py.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import docker
from docker.models.containers import RUN_HOST_CONFIG_KWARGS

from experiments.environments.podman import RUNTIME as PODMAN
from experiments.environments.process import Container, Job, Process
from experiments.jobs.failures import LaunchFailed
from experiments.jobs.sockets import interfaces
from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.processes import tracking
from experiments.processes.executables import captured
from experiments.provision import seccomp
from experiments.provision.engine import FAILURES

START_PATIENCE = 20.0  # seconds until a container that was started runs
POLL = 0.05  # seconds
MONITOR_PATIENCE = 2.0  # seconds until a monitor has ended
ASK_INTERFACES = (
    "import json; from experiments.jobs.sockets import interfaces; print(json.dumps(interfaces()))"
)


class ContainerRefused(LaunchFailed):
    """The engine works and does not want this container: its cpuset, a device, a limit."""

    def __init__(self, text: str) -> None:
        super().__init__(text, "refused by the engine")


@contextlib.contextmanager
def started(command: Container, client: docker.DockerClient) -> Iterator[Any]:
    """The SDK's container, started.

    Raises:
        ContainerRefused: the engine does not want it.
    """
    container = None
    try:
        with _acceptance():
            container = _created(command, client)
            container.start()
        yield container
    finally:
        with contextlib.suppress(*FAILURES):  # by its name: the answer may have been cut off
            client.api.remove_container(command.options["name"], v=True, force=True)
        if container is not None and command.engine == PODMAN.name:
            tracking.end_monitors(str(container.id), MONITOR_PATIENCE)


def _created(command: Container, client: docker.DockerClient) -> Any:
    """The SDK's container; the SDK refuses Podman's user namespaces, so they are added here."""
    options = seccomp.resolved(command.engine, command.options)
    namespace = options.pop("userns_mode", "")
    if not namespace:
        return client.containers.create(command.image, list(command.argv), **options)
    host = {name: options.pop(name) for name in RUN_HOST_CONFIG_KWARGS if name in options}
    host["binds"] = options.pop("volumes")
    if network := options.pop("network", ""):
        host["network_mode"], options["networking_config"] = network, {network: None}
    asked = {**client.api.create_host_config(**host), "UsernsMode": namespace}
    made = client.api.create_container(
        command.image, list(command.argv), host_config=asked, **options
    )
    return client.containers.get(made["Id"])


@contextlib.contextmanager
def waiting(job: Job, client: docker.DockerClient) -> Iterator[Process]:
    """The process that starts a job's ranks, while its containers wait for them.

    Raises:
        ContainerRefused: the engine does not want one of them, or its network.
    """
    with _network(job, client) as network, contextlib.ExitStack() as stack:
        begun = [stack.enter_context(started(one, client)) for one in job.containers]
        running = list(map(_running, begun))  # after all: one that ends at once has ended by then
        network.reload()
        gateway = network.attrs["IPAM"]["Config"][0]["Gateway"]
        places = {"gateway": gateway, "bridge": _interface(gateway, job.entering)}
        for number, container in enumerate(running):
            joined = container.attrs["NetworkSettings"]["Networks"]
            places[f"address{number}"] = joined[job.network]["IPAddress"]
        process = job.process_at(places)
        yield Process(process.argv, {**process.environment, **address(client)})


@contextlib.contextmanager
def _network(job: Job, client: docker.DockerClient) -> Iterator[Any]:
    internal, labels = job.internal, dict(job.labels)
    try:
        with _acceptance():
            made = client.networks.create(
                job.network, "bridge", check_duplicate=True, internal=internal, labels=labels
            )
        yield made
    finally:
        with contextlib.suppress(*FAILURES):
            client.api.remove_network(job.network)


def _running(container: Any) -> Any:
    """A container that was started, as soon as it runs.

    Raises:
        ContainerRefused: it ended at once, or does not come up.
    """
    deadline = time.monotonic() + START_PATIENCE
    container.reload()
    while container.status == "created" and time.monotonic() < deadline:
        time.sleep(POLL)
        container.reload()
    if container.status != "running":
        output = container.logs().decode(errors="replace").strip() or "it printed nothing"
        raise ContainerRefused(
            f"container {container.name} is {container.status} where it should wait for its rank: "
            f"{output}; see that the image holds sleep; finished launches are kept for --resume"
        )
    return container


def _interface(address: str, entering: Sequence[str]) -> str:
    """The interface that has an IPv4 address.

    Args:
        entering: the words before a command that run it where the interface is; none for this
            process's own network.

    Raises:
        ContainerRefused: none has it: the engine's networks are not this machine's.
    """
    if entering:
        here = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = captured([*entering, sys.executable, "-P", "-c", ASK_INTERFACES], env=here)
        names, error = json.loads(done.stdout or "{}"), done.stderr.strip()
    else:
        names, error = interfaces(), ""
    if name := names.get(address):
        return str(name)
    raise ContainerRefused(
        f"no interface of this machine has {address}, the gateway of the containers' network"
        f"{error and f' ({error})'}: containers that form one job need an engine on this machine"
    )


def address(client: docker.DockerClient) -> dict[str, str]:
    """The engine's address as a variable for launchers of ranks; the driver's own by default."""
    path = getattr(client.api.get_adapter(client.api.base_url), "socket_path", None)
    return {"DOCKER_HOST": f"unix://{path}"} if path else {}


@contextlib.contextmanager
def _acceptance() -> Iterator[None]:
    """Around requests that a healthy engine may still refuse.

    Raises:
        ContainerRefused: with the engine's own words.
        ExperimentsError: there is nothing to make a container from.
    """
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise ExperimentsError(
            f"the engine no longer has the image: {error.explanation}; finished launches are kept: "
            "--resume makes it again and goes on"
        ) from error
    except docker.errors.APIError as error:
        if not error.is_client_error():
            raise
        raise ContainerRefused(
            f"the engine refused the container: {error.explanation}; see what it allows here, or "
            "leave out that profile or layout; finished launches are kept for --resume"
        ) from error
