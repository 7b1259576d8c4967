"""Enroot: ranks on nodes, each in a container that an ordinary user starts."""

from pathlib import Path

from experiments.environments import runtime
from experiments.environments.process import FOLDER
from experiments.environments.runtime import Contained, Runtime, Variables, Words


class EnrootRanks(Contained):
    """Ranks that a launcher starts one by one."""

    def words(self, name: str, ranks: int, folder: Path, variables: Variables) -> Words:
        """The image has a folder of its own, so that env(1) changes it."""
        seen = {**variables, **runtime.OWN_NAMESPACE, **runtime.HOME}
        settings = (f"--env={key}={value}" for key, value in sorted(seen.items()))
        start = ["enroot", "start", f"--mount={folder}:{FOLDER}", *settings, str(self.image)]
        return [], [*start, "env", f"--chdir={FOLDER}"], {}


RUNTIME = Runtime("enroot", "Enroot", contained=EnrootRanks)
