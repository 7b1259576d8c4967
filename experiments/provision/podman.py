"""Podman behind Docker's interface: a service that answers, or one started for as long as needed.

Podman has no daemon of its own; its service translates for clients of Docker's API. The
same SDK, image and options then serve both engines.
"""

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
from docker.errors import ImageNotFound

from experiments.environments.podman import RUNTIME
from experiments.machine.facts import status
from experiments.model.checkout import BUILD
from experiments.processes import executables
from experiments.processes.executables import Process
from experiments.provision import base_image, dockerd, engine, image, system
from experiments.provision.engine import EngineMissing
from experiments.provision.image import Image

NAME = RUNTIME.name
LOG = BUILD / "podman.log"
START_PATIENCE = 20.0  # seconds until a service that starts must answer
SYS_RESOURCE = 24  # the bit of CAP_SYS_RESOURCE, linux/capability.h
PID_MAX = Path("/proc/sys/kernel/pid_max")


@contextlib.contextmanager
def running(log: Path = LOG) -> Iterator[docker.DockerClient]:
    """A client of a Podman service that answers. One that had to be started ends on leaving.

    Raises:
        EngineMissing: when none answers and none can be started here.
    """
    client = answering()
    with contextlib.ExitStack() as stack:
        if client is None:
            if refusal := system.hindrance(RUNTIME):
                raise refusal
            address = started_address(os.getpid())
            stack.callback(Path(address.removeprefix("unix://")).unlink, missing_ok=True)
            service = start(address, log)
            stack.callback(dockerd.end, service)
            client = engine.awaited(service, START_PATIENCE, address)
        if client is None:
            raise EngineMissing(
                f"podman system service does not answer: {dockerd.complaint(log)}",
                f"read {log.parent.name}/{log.name}",
            )
        stack.callback(client.close)
        yield client


def answering(driver: int = 0) -> docker.DockerClient | None:
    """A client of the service that answers now, or None; starts none.

    Args:
        driver: a process that may have started a service, used if this user's does not answer.
    """
    own = engine.answering(os.environ.get("CONTAINER_HOST") or "unix:///run/podman/podman.sock")
    return own or (engine.answering(started_address(driver)) if driver else None)


def started_address(driver: int) -> str:
    """Where the service answers that a process has started."""
    return f"unix://{BUILD}/podman.{driver}.sock"


def configuration(files: int, processes: int, capabilities: int) -> str | None:
    """A containers.conf for a root that may not raise limits, None where it may. Pure.

    Podman asks for more open files and processes than such a root has, and no container starts.

    Args:
        files, processes: what this process may have at most, -1 for no limit.
        capabilities: the effective ones, as bits.
    """
    if capabilities >> SYS_RESOURCE & 1:
        return None
    limits = f'"nofile={files}:{files}", "nproc={processes}:{processes}"'
    return f"[containers]\ndefault_ulimits = [{limits}]\n"


def variables(folder: Path) -> dict[str, str]:
    """The variables that Podman needs beside this process's; its settings are in the folder."""
    files, processes = (
        resource.getrlimit(each)[1] for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
    )
    numbers = int(PID_MAX.read_text(encoding="ascii"))  # Podman lowers its own limit to it
    processes = min(processes, numbers) if processes >= 0 else numbers
    wanted = configuration(files, processes, int(status().get("CapEff", "0"), 16))
    if wanted is None or "CONTAINERS_CONF" in os.environ:
        return {}
    file = folder / "containers.conf"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(wanted, encoding="utf-8")
    return {"CONTAINERS_CONF": str(file)}


def start(address: str, log: Path) -> Process:
    """Start a service in a session of its own; a driver's watchdog finds it by its environment."""
    program = executables.find(RUNTIME.program) or RUNTIME.program
    own = {**os.environ, **variables(log.parent)}
    return dockerd.start(log, [program, "system", "service", "--time=0", address], own)


def ensure_image(
    client: docker.DockerClient,
    base: str = base_image.AUTO,
    mpi: str = "openmpi",
    progress: Callable[[str], None] = print,
) -> Image:
    """The image for an MPI in Podman: copied from Docker if Docker answers, else built.

    Raises:
        Missing, ImageBuildFailed: each says what to do.
    """
    source = engine.answering()
    if source is None:
        return image.ensure(client, base, mpi, progress)
    with contextlib.closing(source):
        found = image.ensure(source, base, mpi, progress)
        bring(source, client, found, progress)
    return found


def bring(
    source: docker.DockerClient,
    target: docker.DockerClient,
    found: Image,
    progress: Callable[[str], None],
) -> None:
    """Copy an image from Docker to Podman, unless Podman has it. It keeps its id.

    Raises:
        EngineMissing: one of them fails.
    """
    lack = f"the image {found.tag} could not be brought from Docker to Podman"
    with engine.required(lack, "see what both have room for: df -h"):
        with contextlib.suppress(ImageNotFound):
            target.images.get(found.id)
            return
        progress(f"image: bringing {found.tag} from Docker to Podman")
        archive: Any = source.images.get(found.id).save(named=found.tag)  # a stream of bytes
        target.images.load(archive)
        image.remove_superseded(target, found.mpi)
