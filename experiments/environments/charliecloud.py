"""Charliecloud: a launch over the image's files, or ranks on nodes, in a user's own namespaces."""

from pathlib import Path

from experiments.environments import runtime
from experiments.environments.process import FOLDER, Process
from experiments.environments.runtime import Contained, Runtime, Tree, Variables, Words
from experiments.model.launch import Launch

FORGOTTEN = ("[!H]*", "H[!B]*")
"""Which of the host's variables ranks of a launch do not see: all, but those that begin with HB,
among which is the mark by which a driver finds what it started."""
OF_THE_HOST = ("PYTHON*", "LD_*")
"""Variables that would lead programs of the image to a node's files."""
USER = {"USER": "hbmcomm"}
"""ch-run does not start without one."""


class Charliecloud(Tree):
    """Launches in one container for all ranks, run by an ordinary user in namespaces of its own.

    It shares the host's network, /dev with /dev/shm, process numbers and limits: its cost is that
    of the image's own libraries.
    """

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        ranks, variables = self.harness(launch)
        seen = {**variables, "HOME": "/tmp"}
        first, tree, place = list[str](), self.tree, folder
        if self.root:
            first = runtime.as_nobody(self.machine.uid, self.machine.gid, tree=tree, launch=folder)
            tree, place = runtime.IN_SIGHT / "tree", runtime.IN_SIGHT / "launch"
        argv = [
            *first,
            "ch-run",
            *_variables(FORGOTTEN, seen),
            f"--uid={self.machine.uid}",
            f"--gid={self.machine.gid}",
            "--private-tmp",
            f"--bind={place}:{FOLDER}",
            "--cd=/tmp",
            str(tree),
            "--",
            *ranks,
        ]
        return Process(self.over_layers(argv), USER)


class CharliecloudRanks(Contained):
    """Ranks that a launcher starts one by one."""

    def words(self, name: str, ranks: int, folder: Path, variables: Variables) -> Words:
        """All ranks of a node join one container: only so may they read each other's memory."""
        path = f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin"
        words = [
            "ch-run",
            f"--join-ct={ranks}",
            f"--join-tag={name}",
            *_variables(OF_THE_HOST, {**variables, **runtime.HOME, "PATH": path}),
            *([f"--uid={self.user[0]}", f"--gid={self.user[1]}"] if self.user else []),
            f"--bind={folder}:{FOLDER}",
            f"--cd={FOLDER}",
            str(self.image),
            "--",
        ]
        return [], words, dict(USER)


def _variables(forgotten: tuple[str, ...], seen: Variables) -> list[str]:
    """The options with which a container has these variables, and of the host's not those."""
    unset, added = (f"--unset-env={name}" for name in forgotten), sorted(seen.items())
    return [*unset, "--env-no-expand", *(f"--set-env={name}={value}" for name, value in added)]


RUNTIME = Runtime(
    "charliecloud",
    "Charliecloud",
    program="ch-run",
    packages=("charliecloud*",),
    settings=runtime.USER_NAMESPACES,
    tree=Charliecloud,
    contained=CharliecloudRanks,
    takes_user=True,
)
