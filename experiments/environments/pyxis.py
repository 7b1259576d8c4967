"""Pyxis: Slurm itself makes a container on each node, and all ranks of the node are in it."""

from pathlib import Path

from experiments.environments.process import FOLDER
from experiments.environments.runtime import Contained, Runtime, Variables, Words


class PyxisRanks(Contained):
    """Ranks that srun starts."""

    def words(self, name: str, ranks: int, folder: Path, variables: Variables) -> Words:
        """All of it is said in options of srun."""
        options = [f"--container-image={self.image}", f"--container-mounts={folder}:{FOLDER}"]
        options += [f"--container-workdir={FOLDER}", "--no-container-mount-home"]
        return options, [], dict(variables)


RUNTIME = Runtime("pyxis", "Pyxis", contained=PyxisRanks)
