"""Names of what a launch runs on: environments, profiles, layouts, MPIs, emulated machines."""

import re
from dataclasses import dataclass
from pathlib import Path

from experiments.model.errors import SpecError
from experiments.model.quantities import parse_rate

MPIS = ("openmpi", "mpich", "impi")
PROFILES = ("default", "tuned", "privileged")
LAYOUTS = ("one", "per-rank", "isolated")
ENGINES = ("docker", "podman")

CLUSTER = "slurm"
"""Kind of environment over the nodes of an allocation: "slurm" runs the nodes' own files,
"slurm-charliecloud" the image in that container."""
CONTAINERS = ("charliecloud", "apptainer", "enroot", "pyxis")
"""The containers of that kind; without an engine, profile or layout."""
LAUNCHERS = ("srun", "mpiexec")
"""What starts ranks in an allocation: Slurm itself, or the MPI's own program."""

HOSTS = "hosts"
"""Kind of environment over emulated hosts: "hosts:4x100mbit" has four, with links of that rate;
"hosts-charliecloud:4x100mbit" runs the image in that container on them."""
ON_HOSTS = ("charliecloud", "apptainer")
"""The containers of that kind: those that an ordinary command starts, with no daemon."""
RATE = "1gbit"
"""Rate of the hosts' links, where a name gives none."""
ASKED = re.compile(r"(\d{1,6})(?:x(.+))?")
MOST_HOSTS = 100

VM, VM_DOCKER = "vm", "vm-docker"
"""Kinds of environments in an emulated machine: "vm:NAME" runs as on the host, "vm-docker:NAME" in
Docker there."""
MACHINES = Path(__file__).parents[1] / "emulation" / "machines"
"""A file for each emulated machine; emulation/description.py reads them."""
NOT_EMULATED = "no"
"""What a launch records of a machine that is no emulated one."""


@dataclass(frozen=True)
class EnvironmentId:
    """Where a launch runs. Its text is parsed once, where it enters: "docker", "vm:plain".

    Attributes:
        kind: the text before the colon.
        machine: the emulated machine, "" for the real one.
        hosts: emulated hosts, 0 where there are none.
        rate: of each link of theirs in each direction, as tc(8) writes it.
    """

    kind: str
    machine: str = ""
    hosts: int = 0
    rate: str = ""

    @classmethod
    def parse(cls, text: str) -> "EnvironmentId":
        """The environment of a text; any name is taken, as stored files may have unknown ones."""
        kind, _, rest = text.partition(":")
        if _place(kind) == HOSTS and (asked := ASKED.fullmatch(rest)):
            return cls(kind, hosts=int(asked[1]), rate=asked[2] or RATE)
        return cls(kind, rest)

    @classmethod
    def named(cls, name: str) -> "EnvironmentId":
        """The environment of a text that `in_names` made."""
        for kind in (VM_DOCKER, VM):
            if name.startswith(f"{kind}-"):
                return cls(kind, name.removeprefix(f"{kind}-"))
        return cls(name)

    def __str__(self) -> str:
        where = f"{self.hosts}x{self.rate}" if self.rate else self.machine
        return f"{self.kind}:{where}" if where else self.kind

    @property
    def is_emulated(self) -> bool:
        """Whether it is in an emulated machine."""
        return self.kind in (VM, VM_DOCKER)

    @property
    def on_cluster(self) -> bool:
        """Whether it is over the nodes of an allocation."""
        return _place(self.kind) == CLUSTER

    @property
    def on_hosts(self) -> bool:
        """Whether it is over emulated hosts."""
        return _place(self.kind) == HOSTS

    @property
    def container(self) -> str:
        """On several hosts, the container that its ranks run in; "" for the hosts' own files."""
        return self.kind.partition("-")[2] if self.on_cluster or self.on_hosts else ""

    @property
    def has_engine(self) -> bool:
        """Whether a container engine runs its launches, in a profile and a layout each."""
        return self.kind in ENGINES or self.kind == VM_DOCKER

    @property
    def is_container(self) -> bool:
        """Whether its launches run in a container, or in the image's files without one."""
        return self.kind not in (BARE_HOST.kind, VM, CLUSTER, HOSTS)

    @property
    def in_names(self) -> str:
        """The text as names of files and containers may hold it."""
        return str(self).replace(":", "-")


def _place(kind: str) -> str:
    """Where a kind of environment is: the prefix of the name of a container."""
    return kind.partition("-")[0]


def check_hosts(count: int, rate: str) -> None:
    """Refuse emulated hosts that cannot be.

    Raises:
        SpecError: with what can be.
    """
    if not 1 <= count <= MOST_HOSTS:
        raise SpecError(f"{count} hosts were asked for; there can be 1 to {MOST_HOSTS}")
    parse_rate(rate)


BARE_HOST = EnvironmentId("host")
USERLAND = EnvironmentId("userland")
DOCKER = EnvironmentId("docker")
PODMAN = EnvironmentId("podman")
CHARLIECLOUD = EnvironmentId("charliecloud")
APPTAINER = EnvironmentId("apptainer")
ENVIRONMENTS = (BARE_HOST, USERLAND, DOCKER, PODMAN, CHARLIECLOUD, APPTAINER)
"""The environments of this machine."""


ON_CLUSTER = (
    EnvironmentId(CLUSTER),
    *(EnvironmentId(f"{CLUSTER}-{name}") for name in CONTAINERS),
)
"""The environments of an allocation."""


def machine_names() -> list[str]:
    """The emulated machines."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def emulated() -> tuple[EnvironmentId, ...]:
    """The environments in emulated machines."""
    return tuple(EnvironmentId(kind, name) for kind in (VM, VM_DOCKER) for name in machine_names())
