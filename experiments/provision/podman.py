"""Podman behind Docker's interface: a service that answers, or one started for as long as needed.

Podman has no daemon of its own; its service translates for clients of Docker's API. The
same SDK, image and options then serve both engines.
"""

import contextlib
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import docker
from docker.errors import ImageNotFound

from experiments.environments.docker import SEVERAL
from experiments.environments.podman import RUNTIME
from experiments.machine.facts import status
from experiments.model.checkout import BUILD
from experiments.model.environment import USERNS
from experiments.processes import executables, tracking
from experiments.processes.executables import Process
from experiments.provision import base_image, dockerd, engine, image, system, user_namespaces
from experiments.provision.engine import EngineMissing
from experiments.provision.image import Image

NAME = RUNTIME.name
LOG = BUILD / "podman.log"
START_PATIENCE = 20.0  # seconds until a service that starts must answer
SYS_RESOURCE = 24  # the bit of CAP_SYS_RESOURCE, linux/capability.h
HELPERS = ("podman pause", "catatonit", "slirp4netns", "pasta")
"""Programs that the service leaves running: what holds an ordinary user's namespaces."""
HELPERS_PATIENCE = 2.0  # seconds until they have ended
NETWORKS = ("slirp4netns", "pasta")
"""Programs with which an ordinary user's containers have a network; one of them is needed."""
TUN = "/dev/net/tun"
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
            stack.callback(_end, service, address)
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
    usual = f"unix://{runtime_folder() or '/run'}/podman/podman.sock"
    own = engine.answering(os.environ.get("CONTAINER_HOST") or usual)
    return own or (engine.answering(started_address(driver)) if driver else None)


def runtime_folder() -> Path | None:
    """Where an ordinary user's sockets are; None for root, or where there is no such folder."""
    user = os.geteuid()
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    return folder if user and folder.is_dir() else None


def started_address(driver: int) -> str:
    """Where the service answers that a process has started."""
    folder = runtime_folder()
    return f"unix://{folder or BUILD}/{'hbmcomm-' if folder else ''}podman.{driver}.sock"


def is_rootless(client: docker.DockerClient | None = None) -> bool:
    """Whether an ordinary user runs the service; without one yet, whether this process is one's."""
    if client is None:
        return os.geteuid() != 0
    with engine.required("podman no longer answers", "see that it runs: ./inv doctor"):
        return bool(client.info().get("Rootless"))


def refuse(rootless: bool, profiles: Iterable[str], layouts: Iterable[str] = ()) -> None:
    """Refuse a profile that makes no difference here, and what lacks a user's ids or network.

    Raises:
        EngineMissing: with what mends it.
    """
    if USERNS in profiles:
        if rootless:
            raise EngineMissing(
                f"profile {USERNS} is the same as tuned in a Podman without root: its "
                "containers are all in user namespaces",
                "leave it out of --profiles, or run as root",
            )
        if not all(user_namespaces.of_root()):
            raise user_namespaces.without_ids_of_root()
    several = [layout for layout in layouts if layout in SEVERAL]
    if rootless and several:
        lack = f"layout {several[0]} needs a network, which Podman without root makes with "
        if not any(map(executables.find, NETWORKS)):
            raise EngineMissing(
                f"{lack}{NETWORKS[0]}, which is not installed",
                f"sudo apt-get install -y {NETWORKS[0]}, or leave out --layouts",
            )
        if not os.access(TUN, os.R_OK | os.W_OK):
            raise EngineMissing(
                f"{lack}{TUN}, which this user may not open",
                f"sudo chmod 666 {TUN}, or leave out --layouts",
            )


def _end(service: Process, address: str) -> None:
    """End a service of ours, and what it leaves running for the next container of this user.

    Another container of the user needs that: then it stays.
    """
    idle = False
    if client := engine.answering(address):
        with contextlib.suppress(*engine.FAILURES), contextlib.closing(client):
            idle = not client.containers.list()
    dockerd.end(service)
    left = (NAME, *HELPERS) if idle else (NAME,)  # of a user it is two processes
    tracking.end_daemons(tracking.own_mark(), HELPERS_PATIENCE, names=left)


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
        resource.getrlimit(limit)[1] for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
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
        original = image.ensure(source, base, mpi, progress)
        bring(source, client, original, progress)
    return original


def bring(
    source: docker.DockerClient,
    target: docker.DockerClient,
    original: Image,
    progress: Callable[[str], None],
) -> None:
    """Copy an image from Docker to Podman, unless Podman has it. It keeps its id.

    Raises:
        EngineMissing: one of them fails.
    """
    lack = f"the image {original.tag} could not be brought from Docker to Podman"
    with engine.required(lack, "see what both have room for: df -h"):
        with contextlib.suppress(ImageNotFound):
            target.images.get(original.id)
            return
        progress(f"image: bringing {original.tag} from Docker to Podman")
        archive: Any = source.images.get(original.id).save(named=original.tag)  # a stream of bytes
        target.images.load(archive)
        image.remove_superseded(target, original.mpi)
