"""Containers of ranks that a launcher starts one by one over nodes: the words before the program.

Unlike a container with an mpiexec in it, each rank has one of its own, or joins that of its node.
What a launcher tells its ranks must reach them: their variables, and its files in /tmp.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.unpacked.apptainer import PASSED

OWN_NAMESPACE = {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}
"""MPICH aborts where ranks, each in a user namespace, may not read each other's memory."""
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
        return _RUNTIMES[self.runtime](self, name, ranks, folder, variables)


Parts = tuple[list[str], list[str], dict[str, str]]


def _charliecloud(
    it: Contained, name: str, ranks: int, folder: Path, variables: Mapping[str, str]
) -> Parts:
    """All ranks of a node join one container: only so may they read each other's memory."""
    seen = {**variables, "HOME": "/tmp", "PATH": f"{it.prefix}/bin:/usr/local/bin:/usr/bin:/bin"}
    words = [
        "ch-run",
        f"--join-ct={ranks}",
        f"--join-tag={name}",
        *(f"--unset-env={each}" for each in OF_THE_HOST),
        "--env-no-expand",
        *(f"--set-env={key}={value}" for key, value in sorted(seen.items())),
        *([f"--uid={it.user[0]}", f"--gid={it.user[1]}"] if it.user else []),
        f"--bind={folder}:{FOLDER}",
        "--cd=/tmp",
        str(it.image),
        "--",
    ]
    return [], words, {"USER": "hbmcomm"}  # ch-run does not start without one


def _apptainer(
    it: Contained, name: str, ranks: int, folder: Path, variables: Mapping[str, str]
) -> Parts:
    words = ["apptainer", "exec", "--no-home", f"--bind={folder}:{FOLDER}", "--pwd=/tmp"]
    seen = {**variables, **OWN_NAMESPACE}
    passed = {f"{PASSED}{key}": value for key, value in seen.items()}
    return [], [*words, str(it.image)], passed


def _enroot(
    it: Contained, name: str, ranks: int, folder: Path, variables: Mapping[str, str]
) -> Parts:
    seen = {**variables, **OWN_NAMESPACE}
    settings = (f"--env={key}={value}" for key, value in sorted(seen.items()))
    words = ["enroot", "start", f"--mount={folder}:{FOLDER}", *settings, str(it.image)]
    return [], words, {}


def _pyxis(
    it: Contained, name: str, ranks: int, folder: Path, variables: Mapping[str, str]
) -> Parts:
    """Slurm makes the container itself; all ranks of a node are in one."""
    options = [
        f"--container-image={it.image}",
        f"--container-mounts={folder}:{FOLDER}",
        "--container-workdir=/tmp",
        "--no-container-mount-home",
    ]
    return options, [], dict(variables)


_RUNTIMES: Mapping[str, Callable[[Contained, str, int, Path, Mapping[str, str]], Parts]] = {
    "charliecloud": _charliecloud,
    "apptainer": _apptainer,
    "enroot": _enroot,
    "pyxis": _pyxis,
}
