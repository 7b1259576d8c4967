"""The bare host: mpiexec of the project's own environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments import settings
from experiments.environments.command import Process
from experiments.environments.mpiexec import mpiexec
from experiments.schedule import Launch

PROGRAM = "experiments.harness"


@dataclass(frozen=True)
class Host:
    """Launches on this machine.

    Attributes:
        flavour: the MPI, one of mpiexec.FLAVOURS.
        prefix: the virtual environment that holds it.
        cores: CPUs this process may use.
        variables: for the ranks, beside what the MPI needs.
    """

    flavour: str
    prefix: Path
    cores: int
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        program = (str(self.prefix / "bin/python"), "-m", PROGRAM, str(folder))
        argv, environment = mpiexec(self.flavour, self.prefix, launch.ranks, self.cores, program)
        own = settings.variables(launch.mpi, launch.setting)
        return Process(tuple(argv), environment | dict(self.variables) | own)
