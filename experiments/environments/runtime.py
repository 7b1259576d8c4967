"""What ranks run in: each runtime has a file of its name here, with its RUNTIME and its commands.

Pure: what a runtime needs of a machine is named here, and looked for by provision/system.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

from experiments.environments.mpiexec import mpiexec
from experiments.environments.process import FOLDER, MODULE, Process
from experiments.environments.profiles import Machine
from experiments.model.environment import BARE_HOST, ENVIRONMENTS, RUNTIMES, EnvironmentId
from experiments.model.launch import Launch

Variables = Mapping[str, str]
Words = tuple[list[str], list[str], dict[str, str]]
"""Options of srun, the words before the program, and variables of the launcher."""
OWN_NAMESPACE = {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}
"""MPICH aborts where ranks, each in a user namespace, may not read each other's memory."""
HOME = {"HOME": FOLDER}
UNSHARE = ("unshare", "--mount", "--propagation=private")
USER_NAMESPACES = {
    "user/max_user_namespaces": ("0", "10000"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
    "kernel/apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Settings: a value that keeps ordinary users from making namespaces, and one that does not."""
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


def as_nobody(uid: int, gid: int, **folders: Path) -> list[str]:
    """The words with which root starts a program as another user; IN_SIGHT, it has the folders.

    A user namespace hides who runs a container and changes nothing of what that user may do.
    """
    named = [word for name, folder in folders.items() for word in (name, str(folder))]
    return [*UNSHARE, "/bin/sh", "-ec", NOBODY, "sh", str(uid), str(gid), *named, "exec"]


@dataclass(frozen=True)
class Tree(ABC):
    """Launches over the image's files, from its layers or from a copy, without an engine.

    None filters a system call or grants privileges: they have no profile.

    Attributes:
        tree: the folder that holds the image, or on which its layers are mounted.
        prefix: of the environment in it.
        variables: for the ranks, beside what the MPI needs.
        root: whether the driver is root; its ranks then run as another user.
        layers: a folder and the names of the image's layers in it, as an overlay's option; empty
            where the tree is a copy.
    """

    tree: Path
    prefix: Path
    cores: int
    machine: Machine
    variables: Variables = field(default_factory=dict)
    root: bool = False
    layers: tuple[str, str] | None = None

    @abstractmethod
    def command(self, launch: Launch, folder: Path) -> Process:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""

    def over_layers(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command in a mount namespace of its own, in which the layers are the tree."""
        if self.layers is None:
            return tuple(argv)
        script = f'{OVERLAY}; shift 3; exec "$@"'
        return (*UNSHARE, "/bin/sh", "-ec", script, "sh", *self.layers, str(self.tree), *argv)

    def harness(self, launch: Launch) -> tuple[list[str], dict[str, str]]:
        """The command that runs the harness inside, and the variables of its ranks."""
        program = (str(self.prefix / "bin/python"), *MODULE, FOLDER)
        argv, variables = mpiexec(launch.mpi, self.prefix, launch.ranks, self.cores, program)
        return argv, {**variables, **self.variables}


@dataclass(frozen=True)
class Contained(ABC):
    """Containers of ranks that a launcher starts one by one over nodes.

    Unlike a container with an mpiexec in it, each rank has one of its own, or joins that of its
    node. What a launcher gives its ranks must reach them: their variables, and its files in /tmp.
    So /tmp is the node's, where other users may write: HOME, from which an MPI reads settings, and
    the working directory, from which Python imports, are the launch's folder.

    Attributes:
        image: a folder, or what the runtime else runs.
        prefix: the environment in the image that holds the MPI.
        user: UID and GID of the ranks in it, where root starts them and the runtime can be asked.
    """

    image: Path
    prefix: Path
    user: tuple[int, int] | None = None

    @abstractmethod
    def words(self, name: str, ranks: int, folder: Path, variables: Variables) -> Words:
        """What a launcher is given.

        Args:
            name: of the launch.
            ranks: on each node.
            folder: of the launch; the ranks see it as FOLDER.
            variables: for the ranks.
        """


@dataclass(frozen=True)
class Runtime:
    """A runtime, as the driver, the doctor and figures know it.

    Attributes:
        name: one of RUNTIMES; also that of its file.
        label: its name for readers.
        program: what a machine needs to run it; "" where nothing, or where an engine says so.
        packages: Debian packages, as dpkg's patterns; results store their versions. The first one
            holds the program.
        elsewhere: where a machine gets the program, if its distribution lacks the package.
        maps_ids: whether an ordinary user needs ids of /etc/subuid to run it.
        settings: of the kernel, by their paths in /proc/sys: a value that keeps users from running
            it, and one that does not.
        tree: how it runs a launch over the image as a folder, on this machine.
        contained: how it runs ranks that a launcher starts on several hosts.
        takes_user: whether those may be another user than a root that starts them.
    """

    name: str
    label: str
    program: str = ""
    packages: tuple[str, ...] = ()
    elsewhere: str = ""
    maps_ids: bool = False
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    tree: type[Tree] | None = None
    contained: type[Contained] | None = None
    takes_user: bool = False


@cache
def of(environment: EnvironmentId) -> Runtime:
    """What the ranks of an environment run in; a mere name where only stored files have it."""
    name = environment.runtime
    if name not in RUNTIMES:
        return Runtime(name, str(environment))
    runtime: Runtime = import_module(f"{__package__}.{name}").RUNTIME
    return runtime


def every() -> list[Runtime]:
    """All runtimes, in the order of figures."""
    return [of(EnvironmentId(name)) for name in RUNTIMES]


def tree_of(environment: EnvironmentId) -> type[Tree] | None:
    """How its launches run over the image as a folder; None where they do not."""
    return None if environment.place else of(environment).tree


def changes_user(environment: EnvironmentId) -> bool:
    """Whether its ranks run as another user than a driver that is root."""
    if environment.on_hosts:
        return of(environment).takes_user
    return environment in ENVIRONMENTS and environment != BARE_HOST
