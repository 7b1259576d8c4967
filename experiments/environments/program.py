"""The commands that run a user's program, each under the keeper of experiments/programs/gate. Pure.

In an image the user's files are as they are: the keeper, the library and the gate's socket are
mounted read-only beside them, and each run has a writable layer of its own, which is discarded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from experiments.environments import enter, profiles
from experiments.environments.docker import LABEL
from experiments.environments.hosts import WaysIn
from experiments.environments.mpiexec import AS_ROOT, YIELDING
from experiments.environments.podman import RUNTIME as PODMAN
from experiments.environments.process import Container, Process
from experiments.environments.profiles import TMPFS, Machine
from experiments.environments.runtime import UNSHARE
from experiments.model.program import KEEPER, LARGE, LIBRARY, SOCKET, ProgramArm
from experiments.processes.tracking import MARK

NAME = "hbmcomm"
"""The host name of containers."""
INSIDE, WORK = "/hbmcomm", "/work"
"""Where an image sees the gate's folder, and the copy of --workdir."""
GATE_FOLDER, WORK_FOLDER, UPPER, OVERLAY = "gate", "work", "upper", "overlay"
"""Folders of a run."""
HOST_NAMES = "names"
"""The file in GATE_FOLDER that names emulated hosts to a launcher, one in a line."""
LAUNCHERS = {
    # a slot is a core to Open MPI, and two hardware threads are one; 4 and 5 spell it apart
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_plm": "isolated",  # else 4 wants an ssh to be there, also on one node
    "I_MPI_PIN": "0",
    "HYDRA_BINDING": "none",
    **AS_ROOT,
}
"""Variables for launchers that --ranks starts: the library pins ranks, alike in each environment.
A launcher that is a part of the program's own line is left alone."""
ON_HOSTS = {
    "OMPI_MCA_plm": "rsh",
    "OMPI_MCA_plm_rsh_agent": "{launcher}",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_orte_leave_session_attached": "1",
    "OMPI_MCA_orte_default_hostfile": "{names}",
    "OMPI_MCA_rmaps_base_mapping_policy": "node",
    "PRTE_MCA_plm": "ssh",
    "PRTE_MCA_plm_ssh_agent": "{launcher}",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
    "PRTE_MCA_prte_leave_session_attached": "1",
    "PRTE_MCA_prte_default_hostfile": "{names}",
    "PRTE_MCA_rmaps_default_mapping_policy": "node:oversubscribe",
    "HYDRA_LAUNCHER": "ssh",
    "HYDRA_LAUNCHER_EXEC": "{launcher}",
    "HYDRA_HOST_FILE": "{names}",
    "I_MPI_HYDRA_BOOTSTRAP": "ssh",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC": "{launcher}",
    "I_MPI_HYDRA_HOST_FILE": "{names}",
    "I_MPI_HYDRA_IFACE": "{interface}",
    "I_MPI_PERHOST": "1",
    "I_MPI_FABRICS": "shm:ofi",
    "I_MPI_OFI_PROVIDER": "tcp",
}
"""The same launchers' over emulated hosts, one rank on each in turn: Open MPI 4 and 5, and Hydra's
of MPICH and Intel MPI."""
ENTER = "; ".join(
    (
        'cd "$1" && mount -t overlay -o "nosuid,nodev,$2,upperdir=$4/upper,workdir=$4/overlay" '
        'overlay "$3" && cd /',
        'for each in dev proc sys; do mount --rbind "/$each" "$3/$each"; done',
        f'mount -t tmpfs -o {TMPFS},mode=1777 tmpfs "$3/tmp"',
        f'mkdir -p "$3{INSIDE}"',
        f'mount --bind "$4/gate" "$3{INSIDE}"',
        f'mount -o remount,bind,ro,nosuid,nodev "$3{INSIDE}"',
        f'if [ "$5" ]; then mkdir -p "$3{WORK}"; mount --bind "$4/work" "$3{WORK}"; fi',
        "shift 5",
        f'exec env --ignore-environment {MARK}="${MARK}" "$@"',
    )
)
"""For a shell in a mount namespace of its own: the folder where the layers' names begin, the option
that names them, where they are mounted, the run's folder, and "work" or nothing; then words. The
programs of this machine that root runs get none of the image's variables, of which some make a
program load others' code: the keeper takes them, as the user and in the image."""


@dataclass(frozen=True)
class UserImage:
    """What an engine says of the image of a user's program.

    Attributes:
        id: of the image, by which it is run.
        variables: of its ENV.
        workdir: its WORKDIR.
        layers: the folder and the option of a mount of its layers; none where they cannot be had.
        tree: where that mount is made.
    """

    id: str
    variables: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    layers: tuple[str, str] | None = None
    tree: Path = Path()


@dataclass(frozen=True)
class Surroundings:
    """What all runs of a campaign of a user's program share.

    Attributes:
        machine: what of it a container is given.
        ranks: that a launcher of ours starts; 0 where the program brings its own.
        cores: that ranks may use.
        label: of the containers.
        root: whether the driver is root.
        seccomp: the file of the profile tuned's filter.
        large: the environments with an MPI that has calls with counts of 64 bits.
        whole: whether no ranks are held, since the whole program is timed.
        rootless: whether an ordinary user runs Podman.
    """

    machine: Machine
    ranks: int
    cores: int
    label: str
    root: bool
    seccomp: Path = Path(profiles.SECCOMP)
    large: set[str] = field(default_factory=set)
    whole: bool = False
    rootless: bool = False

    def library(self, arm: ProgramArm) -> str:
        """The build of the library that fits an environment's MPI; "" where none is needed."""
        if self.whole:
            return ""
        return LARGE if arm.base in self.large else LIBRARY

    @property
    def variables(self) -> dict[str, str]:
        """For a launcher that --ranks starts, and its ranks."""
        if not self.ranks:
            return dict(AS_ROOT)
        variables = {**LAUNCHERS, "HBMCOMM_GATE_RANKS": str(self.ranks)}
        if self.ranks > self.cores:
            for yielding in YIELDING.values():
                variables |= yielding
        return variables


def on_host(
    around: Surroundings, arm: ProgramArm, folder: Path, words: Sequence[str], work: Path | None
) -> Process:
    """The program as it is on this machine."""
    gate = folder / GATE_FOLDER
    argv = _kept(gate, str(gate), around.library(arm), str(work or ""), words)
    return Process(tuple(argv), around.variables | _counting(arm))


def on_hosts(
    around: Surroundings,
    arm: ProgramArm,
    folder: Path,
    words: Sequence[str],
    work: Path | None,
    ways: WaysIn,
    first: Sequence[str] = (),
) -> Process:
    """The program as it is on this machine, its ranks on emulated hosts in turn.

    Args:
        first: words before what a launcher starts on a host.
    """
    started = on_host(around, arm, folder, words, work)
    names = folder / GATE_FOLDER / HOST_NAMES
    launching = {
        name: text.format(launcher=enter.LAUNCHER, names=names, interface=ways.home[1])
        for name, text in ON_HOSTS.items()
    }
    launching |= enter.variables(ways.places, {}, first)
    return Process((*ways.controller, *started.argv), {**started.environment, **launching})


def over_layers(
    around: Surroundings,
    arm: ProgramArm,
    folder: Path,
    words: Sequence[str],
    image: UserImage,
    work: Path | None,
) -> Process:
    """The program from the image's files without a container: the inodes that containers have."""
    assert image.layers
    given = {**image.variables, **around.variables, **_counting(arm), "HOME": "/tmp"}
    user = around.machine
    chroot = ["/usr/bin/setpriv", "--no-new-privs", "/usr/sbin/chroot", str(image.tree)]
    if around.root:
        chroot.insert(3, f"--userspec={user.uid}:{user.gid}")
    place = WORK if work else image.workdir
    argv = [
        *UNSHARE,
        *(() if around.root else ("--map-root-user",)),
        *("/bin/sh", "-ec", ENTER, "sh", *image.layers, str(image.tree), str(folder)),
        "work" if work else "",
        *chroot,
        *_kept(Path(INSIDE), INSIDE, around.library(arm), place, words, given),
    ]
    return Process(tuple(argv))


def in_container(
    around: Surroundings,
    arm: ProgramArm,
    folder: Path,
    words: Sequence[str],
    image: UserImage,
    work: Path | None,
    options: Sequence[str],
) -> Process:
    """The program in a container, by the engine's command line.

    Args:
        options: the user's own; each takes the place of ours of the same name.
    """
    rootless = around.rootless and arm.environment == PODMAN.name
    allowed = profiles.options(arm.profile, around.machine, around.ranks, arm.environment, rootless)
    del allowed["read_only"]  # a program may write beside its files; each run has a layer for it
    allowed["security_opt"] = [
        f"seccomp={around.seccomp}" if rule.startswith("seccomp=") else rule
        for rule in allowed["security_opt"]
    ]
    volumes = {str(folder / GATE_FOLDER): {"bind": INSIDE, "mode": "ro"}}
    if work:
        volumes[str(work)] = {"bind": WORK, "mode": "rw"}
    ours = {
        "name": container_name(around, folder),
        "labels": {LABEL: around.label},
        "environment": {**around.variables, **_counting(arm), "HOME": "/tmp"},
        "volumes": volumes,
        "entrypoint": f"{INSIDE}/{KEEPER}",
        "hostname": NAME,  # without a network nothing else names this, and launchers ask for it
        "add_host": f"{NAME}:127.0.0.1",
        **({"working_dir": WORK} if work else {}),
    }
    kept = _kept(Path(INSIDE), INSIDE, around.library(arm), "", words)[1:]
    container = Container(image.id, tuple(kept), allowed | ours, arm.environment)
    line = container.words("--pull=never")
    at = len(line) - len(kept) - 1  # of the image
    names = {word.split("=", 1)[0] for word in options if word.startswith("--")}
    if "--uts" in names:
        names.add("--hostname")  # an engine refuses both
    repeatable = {"--add-host", "--env", "--volume", "--label", "--device", "--ulimit"}
    head = [
        word
        for word in line[:at]
        if word.split("=", 1)[0] not in names or word.split("=", 1)[0] in repeatable
    ]
    return Process((*head, *options, *line[at:]))


def container_name(around: Surroundings, folder: Path) -> str:
    """The name of the container of a run."""
    return f"hbmcomm-{around.label}-{folder.name}"


def with_variables(process: Process, variables: Mapping[str, str]) -> Process:
    """The command with what its engine needs: its address, or settings."""
    return replace(process, environment={**process.environment, **variables})


def _kept(
    programs: Path,
    gate: str,
    library: str,
    place: str,
    words: Sequence[str],
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """The keeper's command line.

    Args:
        programs: the folder with the keeper, and `gate` as the program sees it.
        place: its working directory; "" where it has that already.
        variables: that it sets.
    """
    return [
        str(programs / KEEPER),
        f"{gate}/{SOCKET}",
        library and f"{gate}/{library}",
        place,
        *(f"{name}={value}" for name, value in sorted((variables or {}).items())),
        "--",
        *words,
    ]


def _counting(arm: ProgramArm) -> dict[str, str]:
    return {} if arm.counted else {"HBMCOMM_UNCOUNTED": "1"}
