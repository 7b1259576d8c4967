"""Bubblewrap: the image as a folder, run by an ordinary user in namespaces of its own.

It has its own process numbers and an empty /tmp; network, /dev with /dev/shm and limits are the
host's, and no system call is filtered. No engine grants privileges, so it has no profile.
"""

from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.process import Process
from experiments.environments.tree import Tree
from experiments.model.launch import Launch


class Bubblewrap(Tree):
    """Launches in one container for all ranks."""

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        ranks, variables = self.harness(launch)
        seen = {**variables, "HOME": "/tmp"}
        argv = [
            "bwrap",
            "--die-with-parent",
            "--unshare-user",
            *("--uid", str(self.machine.uid)),
            *("--gid", str(self.machine.gid)),
            "--unshare-pid",
            *("--ro-bind", str(self.tree), "/"),
            *("--dev-bind", "/dev", "/dev"),
            *("--proc", "/proc"),
            *("--ro-bind", "/sys", "/sys"),
            *("--tmpfs", "/tmp"),
            *("--bind", str(folder), FOLDER),
            *("--chdir", "/tmp"),
            "--clearenv",
            *(word for each in sorted(seen.items()) for word in ("--setenv", *each)),
            "--",
            *ranks,
        ]
        return Process(tuple(argv))
