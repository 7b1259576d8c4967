"""A Docker engine that answers: the one that runs, or one that is started for as long as needed.

Installs nothing and knows nothing of images.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import docker
import requests
from docker.constants import DEFAULT_TIMEOUT_SECONDS
from docker.errors import DockerException

from experiments.model.checkout import BUILD
from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.processes.executables import Process
from experiments.provision import dockerd

LOG = BUILD / "dockerd.log"
ANSWER_PATIENCE = 10  # seconds for one ping
START_PATIENCE = 60.0  # seconds until an engine that starts must answer
POLL = 0.1  # seconds
FAILURES = (DockerException, requests.RequestException)  # what the SDK raises


class EngineMissing(Missing):
    """No container engine answers: the reason, and the one thing to do."""

    def __init__(self, lack: str, remedy: str) -> None:
        super().__init__(f"{lack}; {remedy}")
        self.lack = lack
        self.remedy = remedy


@contextlib.contextmanager
def running() -> Iterator[docker.DockerClient]:
    """A client of an engine that answers. A dockerd that had to be started ends with its last user.

    Raises:
        EngineMissing: when none answers and none can be started here.
    """
    with dockerd.counted(dockerd.end_ours), contextlib.closing(_reached()) as client:
        yield client


@contextlib.contextmanager
def required(lack: str, remedy: str) -> Iterator[None]:
    """Raise EngineMissing where the engine fails in the block; the error is put behind `lack`."""
    try:
        yield
    except FAILURES as error:
        raise EngineMissing(f"{lack}: {error}", remedy) from error


def answering(address: str = "") -> docker.DockerClient | None:
    """A client of the engine that answers now, or None; starts none.

    Args:
        address: of the engine; "" for Docker's, as the environment has it.
    """
    return _connect(address)[0]


def awaited(
    daemon: Process | None, patience: float, address: str = ""
) -> docker.DockerClient | None:
    """A client of an engine that starts; None once its process has ended or time is up.

    Args:
        daemon: None where another process started it.
    """
    deadline = time.monotonic() + patience
    while (client := answering(address)) is None and time.monotonic() < deadline:
        if daemon is not None and daemon.poll() is not None:
            return None
        time.sleep(POLL)
    return client


def version() -> str | None:
    """The version of the engine that answers now, or None; starts none."""
    client = answering()
    if client is None:
        return None
    with contextlib.closing(client):
        return version_of(client) or None  # it may have gone away since it answered


def version_of(client: docker.DockerClient) -> str:
    """The version of a client's engine; "" if the engine no longer answers."""
    try:
        return str(client.version().get("Version", "version unknown"))
    except FAILURES:
        return ""


def parts(client: docker.DockerClient) -> dict[str, str]:
    """Versions of the engine, its kernel and its runtime, such as runc; whether it is a user's."""
    try:
        answer, rootless = client.version(), client.info().get("Rootless")
    except FAILURES:
        return {}
    versions = {part["Name"]: str(part["Version"]) for part in answer.get("Components", [])}
    versions["kernel"] = str(answer.get("KernelVersion", "not known"))
    return versions | ({"rootless": "yes"} if rootless else {})


def hindrance() -> EngineMissing | None:
    """The reason why running() would fail; None where it would not."""
    client, silence = _connect()
    if client is None:
        return _hindrance(silence)
    client.close()
    return None


def has_systemd() -> bool:
    """Whether systemd manages this machine's services (the test of sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def _connect(address: str = "") -> tuple[docker.DockerClient | None, str]:
    """A client of an engine that has answered, or None and the error."""
    connect = partial(docker.DockerClient, address) if address else docker.from_env
    try:
        client = connect(timeout=ANSWER_PATIENCE)
    except DockerException as error:
        return None, str(error)
    try:
        client.ping()
    except FAILURES as error:
        client.close()
        return None, str(error)
    client.api.timeout = DEFAULT_TIMEOUT_SECONDS
    return client, ""


def _hindrance(silence: str) -> EngineMissing | None:
    """The reason why an engine cannot be started from here, given the error of a connection."""
    if host := os.environ.get("DOCKER_HOST"):
        return EngineMissing(
            f"no container engine answers at DOCKER_HOST={host}", "start it, or unset DOCKER_HOST"
        )
    if "Permission denied" in silence and dockerd.listens():
        return EngineMissing(
            "the container engine runs, but this user may not speak to it",
            "sudo usermod -aG docker $USER, then log in again",
        )
    if executables.find("dockerd") is None:
        return EngineMissing(
            "no container engine is installed", "sudo apt-get install -y docker.io iptables"
        )
    if os.geteuid() != 0:
        return EngineMissing(
            "the container engine does not run; as root, ./inv starts one itself",
            "sudo systemctl enable --now docker" if has_systemd() else "sudo service docker start",
        )
    return None


def _reached() -> docker.DockerClient:
    """A client of the running engine, or of one that is started."""
    with dockerd.starting():
        client, silence = _connect()
        if client is not None:
            return client
        if refusal := _hindrance(silence):
            raise refusal
        daemon = _start()
        try:
            return _await_answer(daemon)
        except BaseException:
            if daemon is not None:
                dockerd.end(daemon)
                dockerd.clear_leftovers()
            raise


def _start() -> Process | None:
    """Start the engine; its process if this driver must end it, None if it is a service."""
    if has_systemd():
        subprocess.run(["systemctl", "start", "docker"], capture_output=True, check=False)
        return None
    if dockerd.clear_leftovers():
        return None
    return dockerd.start(LOG)


def _await_answer(daemon: Process | None) -> docker.DockerClient:
    if client := awaited(daemon, START_PATIENCE):
        return client
    read = f"read {LOG.parent.name}/{LOG.name}"
    if daemon is not None and daemon.poll() is not None:
        raise EngineMissing(f"dockerd ended while it started: {dockerd.complaint(LOG)}", read)
    silence = f"does not answer within {START_PATIENCE:.0f} s: {_connect()[1]}"
    where = "journalctl -u docker" if has_systemd() else read
    raise EngineMissing(f"the container engine {silence}", where)
