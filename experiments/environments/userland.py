"""Userland: the image's files on the host, without a container."""

from pathlib import Path

from experiments.environments.process import FOLDER, Process
from experiments.environments.profiles import TMPFS
from experiments.environments.runtime import UNSHARE, USER_NAMESPACES, Runtime, Tree
from experiments.model.launch import Launch
from experiments.processes.tracking import MARK

ENTER = "; ".join(
    (
        "tree=$1 user=$2",
        'for each in dev proc sys; do mount --rbind "/$each" "$tree/$each"; done',
        f'mount -t tmpfs -o {TMPFS},mode=1777 tmpfs "$tree/tmp"',
        f'mount --bind "$3" "$tree{FOLDER}"',
        "shift 3",
        'exec setpriv --no-new-privs chroot ${user:+--userspec=$user} "$tree" '
        f'env --ignore-environment --chdir=/tmp {MARK}="${MARK}" "$@"',
    )
)
"""For a shell with the tree, UID:GID or nothing, the launch's folder, and what runs there, its
variables first. /tmp is its own and empty: HOME, the working directory and TMPDIR are there, and in
the machine's, other users put settings of Open MPI and modules of Python."""


class Userland(Tree):
    """Launches without a container: chroot, in a mount namespace of its own.

    Network, processes, /dev with /dev/shm, cgroup and rules are the host's; /tmp is empty, as in a
    container. What an arm in a container costs over this one is the container's own doing; what
    this one costs over the host is that of other files: another Python, another libc.

    A user other than root is mapped to root in a user namespace, since the kernel lets only root
    mount file systems and change the root folder.
    """

    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json."""
        ranks, variables = self.harness(launch)
        seen = {**variables, "HOME": "/tmp"}
        argv = [
            *UNSHARE,
            *(() if self.root else ("--map-root-user",)),
            *("/bin/sh", "-ec", ENTER, "sh"),
            str(self.tree),
            f"{self.machine.uid}:{self.machine.gid}" if self.root else "",
            str(folder),
            *(f"{name}={value}" for name, value in sorted(seen.items())),
            *ranks,
        ]
        return Process(self.over_layers(argv))


RUNTIME = Runtime(
    "userland",
    "the image's files, no container",
    program="unshare",
    packages=("util-linux",),
    settings=USER_NAMESPACES,
    tree=Userland,
)
