"""Apptainer: the image as a folder, run by the command that most HPC sites offer.

Contained as far as it goes: own process numbers and IPC, own /dev with /dev/shm, an empty /tmp, and
none of the host's variables, files or home. It filters no system call, and has no profile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.command import Process
from experiments.environments.docker import FOLDER
from experiments.environments.mpiexec import mpiexec
from experiments.environments.profiles import Machine
from experiments.schedule import Launch

PASSED = "APPTAINERENV_"
"""What a variable's name begins with that is meant for the container; --env splits at commas."""


@dataclass(frozen=True)
class Apptainer:
    """Launches in one container for all ranks.

    Attributes:
        tree: the folder that holds the image, and prefix of the environment in it.
        root: whether the driver is root, whose containers are given another user.
    """

    flavour: str
    tree: Path
    prefix: Path
    cores: int
    machine: Machine
    variables: Mapping[str, str] = field(default_factory=dict)
    root: bool = False

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        program = (str(self.prefix / "bin/python"), "-m", "experiments.harness", FOLDER)
        ranks, told = mpiexec(self.flavour, self.prefix, launch.ranks, self.cores, program)
        user = [f"--security=uid:{self.machine.uid}", f"--security=gid:{self.machine.gid}"]
        argv = [
            "apptainer",
            "exec",
            "--containall",
            "--no-home",
            *(user if self.root else ()),
            f"--bind={folder}:{FOLDER}",
            *(f"--bind={path}" for path in self.machine.dax),
            "--pwd=/tmp",
            str(self.tree),
            *ranks,
        ]
        seen = {**told, **self.variables}
        return Process(tuple(argv), {f"{PASSED}{name}": value for name, value in seen.items()})
