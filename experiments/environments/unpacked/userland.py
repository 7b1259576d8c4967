"""The image's files on the host, without a container: chroot, in a mount namespace of its own.

Network, processes, /dev with /dev/shm, cgroup and rules are the host's. What an arm in a container
costs over this one is the container's own doing; what this one costs over the host is that of other
files: another Python, another libc.
"""

from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.process import Process
from experiments.environments.unpacked.tree import Tree
from experiments.model.launch import Launch
from experiments.processes.tracking import MARK

ENTER = "; ".join(
    (
        "tree=$1 user=$2",
        'for each in dev proc sys tmp; do mount --rbind "/$each" "$tree/$each"; done',
        f'mount --bind "$3" "$tree{FOLDER}"',
        "shift 3",
        'exec chroot ${user:+--userspec=$user} "$tree" env --ignore-environment --chdir=/tmp '
        f'{MARK}="${MARK}" "$@"',
    )
)
"""For a shell with the tree, UID:GID or nothing, the launch's folder, and what runs there, its
variables first."""


class Userland(Tree):
    """Launches without a container.

    A user other than root is mapped to root in a user namespace, since the kernel lets only root
    mount file systems and change the root folder.
    """

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        ranks, variables = self.harness(launch)
        seen = {**variables, "HOME": "/tmp"}
        argv = [
            "unshare",
            "--mount",
            "--propagation=private",
            *(() if self.root else ("--map-root-user",)),
            *("/bin/sh", "-ec", ENTER, "sh"),
            str(self.tree),
            f"{self.machine.uid}:{self.machine.gid}" if self.root else "",
            str(folder),
            *(f"{name}={value}" for name, value in sorted(seen.items())),
            *ranks,
        ]
        return Process(tuple(argv))
