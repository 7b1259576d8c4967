"""Apptainer: the image as a folder, run by the command that most HPC sites offer.

Contained as far as it goes: own process numbers and IPC, own /dev with /dev/shm, an empty /tmp, and
none of the host's variables, files or home. It filters no system call, and has no profile.
"""

from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.process import Process
from experiments.environments.unpacked.tree import Tree
from experiments.model.launch import Launch

PASSED = "APPTAINERENV_"
"""What a variable's name begins with that is meant for the container; --env splits at commas."""


class Apptainer(Tree):
    """Launches in one container for all ranks."""

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        ranks, variables = self.harness(launch)
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
        seen = {f"{PASSED}{name}": value for name, value in variables.items()}
        return Process(tuple(argv), seen)
