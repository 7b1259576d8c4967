"""A container engine: the same harness in one container for all ranks. Docker, or Podman alike.

What a container may do is told by the launch's profile (profiles.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments import profiles
from experiments.environments.command import Container
from experiments.environments.mpiexec import mpiexec
from experiments.environments.profiles import Machine
from experiments.schedule import Launch

FOLDER = "/launch"  # where the container sees the launch's folder
LABEL = "hbmcomm.campaign"


@dataclass(frozen=True)
class Docker:
    """Launches in one container for all ranks.

    Attributes:
        image: name of the harness image, and prefix of the environment in it.
        campaign: labels the containers, so that leftovers can be found.
        engine: "docker" or "podman".
    """

    flavour: str
    image: str
    prefix: Path
    cores: int
    machine: Machine
    campaign: str
    variables: Mapping[str, str] = field(default_factory=dict)
    engine: str = "docker"

    def command(self, launch: Launch, folder: Path) -> Container:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        program = (str(self.prefix / "bin/python"), "-m", "experiments.harness", FOLDER)
        argv, environment = mpiexec(
            self.flavour,
            self.prefix,
            launch.ranks,
            self.cores,
            program,
            contained=self.engine == "docker" and launch.profile == "default",
        )
        options = {
            "name": f"hbmcomm-{self.campaign}-{launch.name}",
            "labels": {LABEL: self.campaign},
            "environment": environment | dict(self.variables) | {"HOME": "/tmp"},
            "working_dir": "/tmp",
            "volumes": {str(folder): {"bind": FOLDER, "mode": "rw"}},
        }
        allowed = profiles.options(launch.profile, self.machine, launch.ranks)
        return Container(self.image, tuple(argv), options | allowed, self.engine)
