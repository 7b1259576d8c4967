"""Charliecloud: the image as a folder, run by an ordinary user in namespaces of its own.

It shares the host's network, /dev with /dev/shm, process numbers and limits, and filters no system
call: its cost is that of the image's own libraries. No engine grants privileges, so it has no
profile.
"""

from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.process import Process
from experiments.environments.unpacked.tree import Tree
from experiments.model.launch import Launch

FORGOTTEN = ("[!H]*", "H[!B]*")
"""Which of the host's variables ranks do not see: all, but those that begin with HB, among which is
the mark by which a driver finds what it started."""


class Charliecloud(Tree):
    """Launches in one container for all ranks."""

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        ranks, variables = self.harness(launch)
        seen = {**variables, "HOME": "/tmp"}
        argv = [
            "ch-run",
            *(f"--unset-env={each}" for each in FORGOTTEN),
            "--env-no-expand",
            *(f"--set-env={name}={value}" for name, value in sorted(seen.items())),
            f"--uid={self.machine.uid}",
            f"--gid={self.machine.gid}",
            "--private-tmp",
            f"--bind={folder}:{FOLDER}",
            "--cd=/tmp",
            str(self.tree),
            "--",
            *ranks,
        ]
        return Process(tuple(argv), {"USER": "hbmcomm"})  # ch-run does not start without one
