"""Launches with the MPI that the site provides: its mpiexec, found as its modules want. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.environments.cluster.slurm import Slurm
from experiments.environments.host import Host
from experiments.environments.process import Process
from experiments.model.launch import Launch

OURS = ("PATH", "LD_LIBRARY_PATH")
"""Variables that would lead ranks to an MPI from a wheel."""


@dataclass(frozen=True)
class OfSite:
    """Launches of another environment's command.

    Attributes:
        inner: makes the command; its prefix is the site's environment.
        mpiexec: in the place of one in that prefix.
        variables: with which the site's Python finds the project.
    """

    inner: Host | Slurm
    mpiexec: Path
    variables: Mapping[str, str]

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        made = self.inner.command(launch, folder)
        replaced = str(self.inner.prefix / "bin/mpiexec")
        argv = tuple(str(self.mpiexec) if word == replaced else word for word in made.argv)
        kept = {name: value for name, value in made.environment.items() if name not in OURS}
        return replace(made, argv=argv, environment={**kept, **self.variables})
