"""A container engine: the same harness in one container for all ranks, or one for each rank.

For Docker and Podman. The launch's profile says what a container may do (profiles.py), its layout
what several containers share. `per-rank`: a container for each rank; they share /dev/shm, System V
IPC and the process numbers. `isolated`: nothing is shared but a network. In both, an MPI gets the
bridge alone: which ways its data takes is for the MPI to find, and nothing here forces it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.environments import enter, profiles
from experiments.environments.mpiexec import across, mpiexec, of_a_host
from experiments.environments.process import FOLDER, MODULE, Container, Job, Process
from experiments.environments.profiles import Machine
from experiments.environments.runtime import Runtime
from experiments.model.launch import Launch

RUNTIME = Runtime("docker", "Docker", packages=("docker*", "containerd*", "runc"))
LABEL = "hbmcomm.campaign"
SEVERAL = ("per-rank", "isolated")
"""Layouts with a container for each rank."""
ROOTLESS_NETWORK = ("podman", "unshare", "--rootless-netns")
"""Words before a command that run it where rootless Podman has its bridges: not on this machine's
network, but in a network namespace of the user."""
IDLE = ("sleep", "infinity")
"""What a container does while ranks come and go in it."""
NAMED_BY_HOST = ("mpich",)
"""MPIs with a UCX that names its files in /dev/shm after the host: ranks that share them abort if
their host names differ. All other MPIs tell their nodes apart by that name."""


@dataclass(frozen=True)
class Docker:
    """Launches in containers of an engine.

    Attributes:
        image: name of the harness image, and prefix of the environment in it.
        campaign: labels the containers, so that leftovers can be found.
        engine: "docker" or "podman"; with its version, "" where that is not known.
        host_prefix: the MPI's environment on this machine; ranks in several containers need one.
        rootless: whether an ordinary user runs the engine.
    """

    image: str
    prefix: Path
    cores: int
    machine: Machine
    campaign: str
    variables: Mapping[str, str] = field(default_factory=dict)
    engine: str = "docker"
    host_prefix: Path | None = None
    version: str = ""
    rootless: bool = False

    def command(self, launch: Launch, folder: Path) -> Container | Job:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        pinned = (*profiles.PINNED, self.machine.cpus) if self.rootless else ()
        program = (*pinned, str(self.prefix / "bin/python"), *MODULE, FOLDER)
        argv, environment = mpiexec(
            launch.mpi,
            self.prefix,
            launch.ranks,
            self.cores,
            program,
            contained=profiles.reading_refused(launch.profile, self.engine, self.version),
        )
        if launch.layout not in SEVERAL:
            return self._container(launch, folder, argv, environment, launch.ranks)
        together = 1 if launch.layout == "isolated" else launch.ranks
        container = self._container(launch, folder, IDLE, of_a_host(environment), together)
        return self._job(launch, container, program)

    def _job(self, launch: Launch, container: Container, program: Sequence[str]) -> Job:
        """A container for each rank.

        Args:
            container: what all of them are; its name begins theirs and is the network's.
        """
        assert self.host_prefix, "ranks in several containers are started by an mpiexec outside"
        flavour, name = launch.mpi, container.options["name"]
        names = [f"{name}-{n}" for n in range(launch.ranks)]
        containers = tuple(
            _one_of(container, launch.layout, flavour, names, n) for n in range(launch.ranks)
        )
        hosts, home = [f"{{address{n}}}" for n in range(launch.ranks)], ("{gateway}", "{bridge}")
        argv, variables = across(
            flavour, self.host_prefix, hosts, home, self.cores, program, enter.LAUNCHER
        )
        entered = enter.variables(
            dict(zip(hosts, names, strict=True)),
            {self.host_prefix: self.prefix, enter.LAUNCHER: Path("/bin/true")},
        )
        internal = self.engine == "docker"  # Podman's have no address on this machine
        process = Process(tuple(argv), variables | entered)
        inside = ROOTLESS_NETWORK if self.rootless else ()
        return Job(name, container.options["labels"], internal, containers, process, inside)

    def _container(
        self,
        launch: Launch,
        folder: Path,
        argv: Sequence[str],
        environment: Mapping[str, str],
        ranks: int,
    ) -> Container:
        """With what so many ranks need that share its memory."""
        options = {
            "name": f"hbmcomm-{self.campaign}-{launch.name}",
            "labels": {LABEL: self.campaign},
            "environment": {**environment, **self.variables, "HOME": "/tmp"},
            "working_dir": "/tmp",
            "volumes": {str(folder): {"bind": FOLDER, "mode": "rw"}},
        }
        allowed = profiles.options(launch.profile, self.machine, ranks, self.engine, self.rootless)
        return Container(self.image, tuple(argv), options | allowed, self.engine)


def _one_of(
    container: Container, layout: str, flavour: str, names: Sequence[str], number: int
) -> Container:
    """One of the containers of a job."""
    options = {key: value for key, value in container.options.items() if key != "network_mode"}
    shared = layout == "per-rank"
    options |= {
        "name": names[number],
        "network": container.options["name"],
        "hostname": f"rank{0 if shared and flavour in NAMED_BY_HOST else number}",
    }
    if shared and number == 0:
        options |= {"ipc_mode": "shareable"}
    elif shared:
        own = ["userns_mode"] if "userns_mode" in options else []
        options |= dict.fromkeys(("ipc_mode", "pid_mode", *own), f"container:{names[0]}")
        options.pop("shm_size", None)  # the first one's is theirs
    return replace(container, options=options)
