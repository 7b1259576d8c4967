"""The image as a folder: what all runtimes know that need no engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.mpi.mpiexec import mpiexec
from experiments.environments.profiles import Machine
from experiments.model.launch import Launch


@dataclass(frozen=True)
class Tree:
    """Launches over the image's files.

    Attributes:
        flavour: the MPI, one of MPIS.
        tree: the folder that holds the image, and prefix of the environment in it.
        variables: for the ranks, beside what the MPI needs.
        root: whether the driver is root; its ranks then run as another user.
    """

    flavour: str
    tree: Path
    prefix: Path
    cores: int
    machine: Machine
    variables: Mapping[str, str] = field(default_factory=dict)
    root: bool = False

    def harness(self, launch: Launch) -> tuple[list[str], dict[str, str]]:
        """The command that runs the harness inside, and the variables of its ranks."""
        program = (str(self.prefix / "bin/python"), "-m", "experiments.programs.harness", FOLDER)
        argv, variables = mpiexec(self.flavour, self.prefix, launch.ranks, self.cores, program)
        return argv, {**variables, **self.variables}
