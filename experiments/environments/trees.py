"""The image without an engine: programs that run its files, from its layers or from a copy.

None of them filters a system call or grants privileges: they have no profile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.docker import FOLDER
from experiments.environments.host import MODULE
from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import Process
from experiments.environments.profiles import TMPFS, Machine
from experiments.model.launch import Launch
from experiments.processes.tracking import MARK

PASSED = "APPTAINERENV_"
"""What a variable's name begins with that is meant for Apptainer's container; --env splits at
commas."""
UNSHARE = ("unshare", "--mount", "--propagation=private")
FORGOTTEN = ("[!H]*", "H[!B]*")
"""Which of the host's variables ranks in Charliecloud do not see: all, but those that begin with
HB, among which is the mark by which a driver finds what it started."""
OVERLAY = 'cd "$1"; mount -t overlay -o "nosuid,nodev,$2" overlay "$3"; cd /'
"""For a shell with the folder where the layers' names begin, the option of the mount, and where. No
program of an image gives its user another one, and no device file in it opens a device."""
IN_SIGHT = Path("/mnt")
NOBODY = "; ".join(
    (
        f"mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs {IN_SIGHT}",
        "user=$1 group=$2",
        "shift 2",
        f'while [ "$1" != exec ]; do mkdir "{IN_SIGHT}/$1"; mount --bind "$2" "{IN_SIGHT}/$1"; '
        "shift 2; done",
        "shift",
        'exec setpriv --reuid="$user" --regid="$group" --clear-groups --no-new-privs "$@"',
    )
)
"""For a shell of root, in a mount namespace, with UID, GID, names and folders, "exec" and what
runs: as that user, whom the folders above these may not let in."""
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


def as_nobody(uid: int, gid: int, **folders: Path) -> list[str]:
    """The words with which root starts a program as another user; IN_SIGHT, it has the folders.

    A user namespace hides who runs a container and changes nothing of what that user may do.
    """
    named = [word for name, folder in folders.items() for word in (name, str(folder))]
    return [*UNSHARE, "/bin/sh", "-ec", NOBODY, "sh", str(uid), str(gid), *named, "exec"]


@dataclass(frozen=True)
class Tree:
    """Launches over the image's files.

    Attributes:
        flavour: the MPI, one of MPIS.
        tree: the folder that holds the image, or on which its layers are mounted.
        prefix: of the environment in it.
        variables: for the ranks, beside what the MPI needs.
        root: whether the driver is root; its ranks then run as another user.
        layers: a folder and the names of the image's layers in it, as an overlay's option; empty
            where the tree is a copy.
    """

    flavour: str
    tree: Path
    prefix: Path
    cores: int
    machine: Machine
    variables: Mapping[str, str] = field(default_factory=dict)
    root: bool = False
    layers: tuple[str, str] | None = None

    def over_layers(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command in a mount namespace of its own, in which the layers are the tree."""
        if self.layers is None:
            return tuple(argv)
        script = f'{OVERLAY}; shift 3; exec "$@"'
        return (*UNSHARE, "/bin/sh", "-ec", script, "sh", *self.layers, str(self.tree), *argv)

    def harness(self, launch: Launch) -> tuple[list[str], dict[str, str]]:
        """The command that runs the harness inside, and the variables of its ranks."""
        program = (str(self.prefix / "bin/python"), *MODULE, FOLDER)
        argv, variables = mpiexec(self.flavour, self.prefix, launch.ranks, self.cores, program)
        return argv, {**variables, **self.variables}


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
        seen = {f"{PASSED}{name}": value for name, value in variables.items()}
        return Process(self.over_layers(argv), seen)


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
            first = as_nobody(self.machine.uid, self.machine.gid, tree=tree, launch=folder)
            tree, place = IN_SIGHT / "tree", IN_SIGHT / "launch"
        argv = [
            *first,
            "ch-run",
            *(f"--unset-env={each}" for each in FORGOTTEN),
            "--env-no-expand",
            *(f"--set-env={name}={value}" for name, value in sorted(seen.items())),
            f"--uid={self.machine.uid}",
            f"--gid={self.machine.gid}",
            "--private-tmp",
            f"--bind={place}:{FOLDER}",
            "--cd=/tmp",
            str(tree),
            "--",
            *ranks,
        ]
        user = {"USER": "hbmcomm"}  # ch-run does not start without one
        return Process(self.over_layers(argv), user)


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
