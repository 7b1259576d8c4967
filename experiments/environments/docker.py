"""A container engine: the same harness in one container for all ranks, or one for each rank.

For Docker and Podman. The launch's profile says what a container may do (profiles.py), its layout
what several containers share (layouts.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments import layouts, profiles
from experiments.environments.mpi.mpiexec import mpiexec, of_a_host
from experiments.environments.process import Container, Job
from experiments.environments.profiles import Machine
from experiments.model.launch import Launch

FOLDER = "/launch"  # where the container sees the launch's folder
LABEL = "hbmcomm.campaign"


@dataclass(frozen=True)
class Docker:
    """Launches in containers of an engine.

    Attributes:
        flavour: the MPI, one of MPIS.
        image: name of the harness image, and prefix of the environment in it.
        campaign: labels the containers, so that leftovers can be found.
        engine: "docker" or "podman"; with its version, "" where that is not known.
        host_prefix: the MPI's environment on this machine; ranks in several containers need one.
    """

    flavour: str
    image: str
    prefix: Path
    cores: int
    machine: Machine
    campaign: str
    variables: Mapping[str, str] = field(default_factory=dict)
    engine: str = "docker"
    host_prefix: Path | None = None
    version: str = ""

    def command(self, launch: Launch, folder: Path) -> Container | Job:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        program = (str(self.prefix / "bin/python"), "-m", "experiments.programs.harness", FOLDER)
        argv, environment = mpiexec(
            self.flavour,
            self.prefix,
            launch.ranks,
            self.cores,
            program,
            contained=profiles.reading_refused(launch.profile, self.engine, self.version),
        )
        if launch.layout not in layouts.SEVERAL:
            return self._container(launch, folder, argv, environment, launch.ranks)
        assert self.host_prefix, "ranks in several containers are started by an mpiexec outside"
        together = 1 if launch.layout == "isolated" else launch.ranks
        each = self._container(launch, folder, (), of_a_host(environment), together)
        prefixes = self.host_prefix, self.prefix
        return layouts.job(
            launch.layout, each, launch.ranks, self.flavour, prefixes, self.cores, program
        )

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
        allowed = profiles.options(launch.profile, self.machine, ranks, self.engine)
        return Container(self.image, tuple(argv), options | allowed, self.engine)
