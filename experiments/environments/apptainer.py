"""Apptainer: a launch over the image's files, or ranks on nodes, in containers of a user's own."""

from collections.abc import Mapping
from pathlib import Path

from experiments.environments import runtime
from experiments.environments.process import FOLDER, Process
from experiments.environments.runtime import Contained, Runtime, Tree, Variables, Words
from experiments.model.launch import Launch

PASSED = "APPTAINERENV_"
"""What a variable's name begins with that is meant for Apptainer's container; --env splits at
commas."""


class Apptainer(Tree):
    """Launches in one container for all ranks, run by the command that most HPC sites offer.

    Contained as far as it goes: own process numbers and IPC, own /dev with /dev/shm, an empty /tmp,
    and none of the host's variables, files or home.
    """

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
        return Process(self.over_layers(argv), _passed(variables))


class ApptainerRanks(Contained):
    """Ranks that a launcher starts one by one."""

    def words(self, name: str, ranks: int, folder: Path, variables: Variables) -> Words:
        """Each rank in a container of its own."""
        words = ["apptainer", "exec", "--no-home", f"--bind={folder}:{FOLDER}", f"--pwd={FOLDER}"]
        return [], [*words, str(self.image)], _passed({**variables, **runtime.OWN_NAMESPACE})


def _passed(variables: Mapping[str, str]) -> dict[str, str]:
    return {f"{PASSED}{name}": value for name, value in variables.items()}


RUNTIME = Runtime(
    "apptainer",
    "Apptainer",
    program="apptainer",
    packages=("apptainer*",),
    elsewhere="apptainer.org",
    tree=Apptainer,
    contained=ApptainerRanks,
)
