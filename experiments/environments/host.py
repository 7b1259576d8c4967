"""The bare host: ranks by mpiexec of the project's own environment, or by a program of ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.mpi.mpiexec import mpiexec
from experiments.environments.process import Process
from experiments.model import mpi_settings
from experiments.model.launch import Launch

PROGRAM = "experiments.programs.harness"


@dataclass(frozen=True)
class Host:
    """Launches on this machine.

    Attributes:
        flavour: the MPI, one of MPIS.
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
        own = mpi_settings.variables(launch.mpi, launch.setting)
        return Process(tuple(argv), environment | dict(self.variables) | own)


@dataclass(frozen=True)
class OwnStarter(Host):
    """Launches on this machine of a program that starts its ranks itself.

    Attributes:
        program: the module; its arguments are the launch's folder and `more`.
    """

    program: str = ""
    more: tuple[str, ...] = ()

    def command(self, launch: Launch, folder: Path) -> Process:
        """The program over `folder`, which holds launch.json."""
        python = str(self.prefix / "bin/python")
        _, environment = mpiexec(self.flavour, self.prefix, launch.ranks, self.cores, ())
        argv = (python, "-m", self.program, str(folder), *self.more)
        return Process(argv, environment | dict(self.variables))
