"""Containers of ranks that a launcher starts one by one over nodes: the words before the program.

Unlike a container with an mpiexec in it, each rank has one of its own, or joins that of its node.
What a launcher gives its ranks must reach them: their variables, and its files in /tmp. So /tmp is
the node's, where other users may write: HOME, from which an MPI reads settings, and the working
directory, from which Python imports, are the launch's folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.trees import PASSED

OWN_NAMESPACE = {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}
"""MPICH aborts where ranks, each in a user namespace, may not read each other's memory."""
HOME = {"HOME": FOLDER}
OF_THE_HOST = ("PYTHON*", "LD_*")
"""Variables that would lead programs of the image to the node's files."""


@dataclass(frozen=True)
class Contained:
    """What ranks run in.

    Attributes:
        runtime: of CONTAINERS.
        image: a folder, or what the runtime else runs.
        prefix: the environment in the image that holds the MPI.
        user: UID and GID of the ranks in it, where root starts them and the runtime can be asked.
    """

    runtime: str
    image: Path
    prefix: Path
    user: tuple[int, int] | None = None

    def words(
        self, name: str, ranks: int, folder: Path, variables: Mapping[str, str]
    ) -> tuple[list[str], list[str], dict[str, str]]:
        """Options of srun, the words before the program, and variables of the launcher.

        Args:
            name: of the launch.
            ranks: on each node.
            folder: of the launch; the ranks see it as FOLDER.
            variables: for the ranks.
        """
        mount, image = f"{folder}:{FOLDER}", str(self.image)
        if self.runtime == "pyxis":  # Slurm makes the container; all ranks of a node are in one
            options = [f"--container-image={image}", f"--container-mounts={mount}"]
            options += [f"--container-workdir={FOLDER}", "--no-container-mount-home"]
            return options, [], dict(variables)
        if self.runtime == "charliecloud":  # ch-run does not start without USER
            return [], self._charliecloud(name, ranks, mount, variables), {"USER": "hbmcomm"}
        seen = {**variables, **OWN_NAMESPACE}
        if self.runtime == "apptainer":
            words = ["apptainer", "exec", "--no-home", f"--bind={mount}", f"--pwd={FOLDER}", image]
            return [], words, {f"{PASSED}{key}": value for key, value in seen.items()}
        settings = (f"--env={key}={value}" for key, value in sorted((seen | HOME).items()))
        start = ["enroot", "start", f"--mount={mount}", *settings, image]
        return [], [*start, "env", f"--chdir={FOLDER}"], {}  # the image has a folder of its own

    def _charliecloud(
        self, name: str, ranks: int, mount: str, variables: Mapping[str, str]
    ) -> list[str]:
        """All ranks of a node join one container: only so may they read each other's memory."""
        path = f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
        seen = {**variables, **HOME, "PATH": path}
        return [
            "ch-run",
            f"--join-ct={ranks}",
            f"--join-tag={name}",
            *(f"--unset-env={each}" for each in OF_THE_HOST),
            "--env-no-expand",
            *(f"--set-env={key}={value}" for key, value in sorted(seen.items())),
            *([f"--uid={self.user[0]}", f"--gid={self.user[1]}"] if self.user else []),
            f"--bind={mount}",
            f"--cd={FOLDER}",
            str(self.image),
            "--",
        ]
