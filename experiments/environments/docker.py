"""A Docker container: the same harness, with the least privilege that still places memory.

SYS_NICE is there because the engine's default seccomp profile refuses mbind without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from experiments.environments.command import Container
from experiments.environments.mpiexec import mpiexec
from experiments.schedule import Launch

PROFILE = "cap_drop ALL, cap_add SYS_NICE, seccomp of the engine"
FOLDER = "/launch"  # where the container sees the launch's folder
LABEL = "hbmcomm.campaign"
TMPFS = "rw,nosuid,nodev,size=256m"


@dataclass(frozen=True)
class Machine:
    """What of the host is passed through.

    Attributes:
        cpus, mems: what this process may use, in the kernel's list form: "0-3,8".
        dax: memory device files, such as /dev/dax0.0.
        uid, gid: who owns what the container writes; never root.
    """

    cpus: str
    mems: str
    dax: tuple[str, ...]
    uid: int
    gid: int


@dataclass(frozen=True)
class Docker:
    """Launches in one container for all ranks.

    Attributes:
        image: name of the harness image, and prefix of the environment in it.
        campaign: labels the containers, so that leftovers can be found.
    """

    flavour: str
    image: str
    prefix: Path
    cores: int
    machine: Machine
    campaign: str
    variables: Mapping[str, str] = field(default_factory=dict)

    def command(self, launch: Launch, folder: Path) -> Container:
        """The harness over `folder`, which holds launch.json and is the only thing mounted."""
        program = (str(self.prefix / "bin/python"), "-m", "experiments.harness", FOLDER)
        argv, environment = mpiexec(
            self.flavour, self.prefix, launch.ranks, self.cores, program, contained=True
        )
        options = {
            "name": f"hbmcomm-{self.campaign}-{launch.name}",
            "labels": {LABEL: self.campaign},
            "user": f"{self.machine.uid}:{self.machine.gid}",
            "environment": environment | dict(self.variables) | {"HOME": "/tmp"},
            "working_dir": "/tmp",
            "volumes": {str(folder): {"bind": FOLDER, "mode": "rw"}},
            "tmpfs": {"/tmp": TMPFS},
            "shm_size": shared_memory(launch.ranks),
            "read_only": True,
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "cap_add": ["SYS_NICE"],
            "security_opt": ["no-new-privileges"],
            "cpuset_cpus": self.machine.cpus,
            "cpuset_mems": self.machine.mems,
            "devices": [f"{path}:{path}:rw" for path in self.machine.dax],
            "pids_limit": 1024 + 64 * launch.ranks,
        }
        return Container(self.image, tuple(argv), options)


def shared_memory(ranks: int) -> int:
    """Bytes of /dev/shm for a launch: an MPI's segments take about 16 MiB a rank, less kills it."""
    return 64 * 2**20 * (ranks + 1)
