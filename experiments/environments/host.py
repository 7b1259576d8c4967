"""The bare host: ranks by mpiexec of the project's own environment, or by a program of ours."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import PROGRAM, Process
from experiments.environments.runtime import Runtime
from experiments.model import mpi_settings
from experiments.model.launch import Launch

RUNTIME = Runtime("host", "host")
OVER = 'mount --all --fstab "$1"; shift; exec "$@"'
"""For a shell with a list of copies, and what runs once each is mounted over its file."""


def over_copies(process: Process, listed: Path) -> Process:
    """A command that sees copies in the place of files, in a mount namespace of its own.

    A user other than root mounts as root of a user namespace, and is itself again in another one.

    Args:
        listed: as fstab(5) has it.
    """
    before, script = ["unshare", "--mount", "--propagation=private"], OVER
    if user := os.geteuid():
        before.append("--map-root-user")
        own = f"unshare --map-user={user} --map-group={os.getegid()}"
        script = script.replace("exec", f"exec {own}")
    words = (*before, "/bin/sh", "-ec", script, "sh", str(listed), *process.argv)
    return replace(process, argv=words)


@dataclass(frozen=True)
class Host:
    """Launches on this machine.

    Attributes:
        prefix: the virtual environment that holds the MPI.
        cores: CPUs this process may use.
        variables: for the ranks, beside what the MPI needs.
        starter: a module that starts its ranks itself, and its arguments behind the launch's
            folder; none where mpiexec starts the harness.
    """

    prefix: Path
    cores: int
    variables: Mapping[str, str] = field(default_factory=dict)
    starter: tuple[str, ...] = ()

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness or the starter over `folder`, which holds launch.json."""
        module, *more = self.starter or (PROGRAM,)
        program = (str(self.prefix / "bin/python"), "-P", "-m", module, str(folder), *more)
        argv, environment = mpiexec(launch.mpi, self.prefix, launch.ranks, self.cores, program)
        own = mpi_settings.variables(launch.mpi, launch.setting)
        own |= mpi_settings.hbw_policy(launch.hbw_policy)
        words = program if self.starter else tuple(argv)
        return Process(words, environment | dict(self.variables) | own)
