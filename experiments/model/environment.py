"""Names of what a launch runs on: environments, profiles, layouts, MPIs, emulated machines."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.model.errors import SpecError
from experiments.model.quantities import parse_rate

MPIS = ("openmpi", "mpich", "impi")
USERNS = "userns"
"""The profile of a container in a user namespace: tuned, with a root that is not the host's."""
PROFILES = ("default", USERNS, "tuned", "privileged")
"""From the fewest rights to the most."""
PROFILES_OF_ALL = tuple(profile for profile in PROFILES if profile != USERNS)
"""Those that every engine has; USERNS takes a Podman that root runs, and ids in /etc/subuid."""
LAYOUTS = ("one", "per-rank", "isolated")
ENGINES = ("docker", "podman")

CLUSTER = "slurm"
"""Place of the nodes of an allocation: "slurm" runs the nodes' own files, "slurm-charliecloud" the
image in that container."""
CONTAINERS = ("charliecloud", "apptainer", "enroot", "pyxis")
"""The runtimes of that place beside its own files; without an engine, profile or layout."""
LAUNCHERS = ("srun", "mpiexec")
"""What starts ranks in an allocation: Slurm itself, or the MPI's own program."""

HOSTS = "hosts"
"""Place of emulated hosts: "hosts:4x100mbit" has four, with links of that rate;
"hosts-charliecloud:4x100mbit" runs the image in that container on them."""
ON_HOSTS = ("charliecloud", "apptainer")
"""The runtimes of that place beside its own files: an ordinary command starts them, no daemon."""
RATE = "1gbit"
"""Rate of the hosts' links, where a name gives none."""
ASKED = re.compile(r"(\d{1,6})(?:x(.+))?")
MOST_HOSTS = 100

VM, VM_DOCKER = "vm", "vm-docker"
"""Kinds of environments in an emulated machine, a place too: "vm:NAME" runs as on the host,
"vm-docker:NAME" in Docker there."""
PLACES = (CLUSTER, HOSTS, VM)
"""How the kind of an environment begins that is not on this machine itself."""
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
        if cls(kind).on_hosts and (asked := ASKED.fullmatch(rest)):
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
    def place(self) -> str:
        """One of PLACES; "" for this machine itself."""
        first = self.kind.partition("-")[0]
        return first if first in PLACES else ""

    @property
    def runtime(self) -> str:
        """What its ranks run in there, one of RUNTIMES; another name only in stored files."""
        return self.kind.removeprefix(self.place).removeprefix("-") or BARE_HOST.kind

    @property
    def is_emulated(self) -> bool:
        """Whether it is in an emulated machine."""
        return self.place == VM

    @property
    def on_cluster(self) -> bool:
        """Whether it is over the nodes of an allocation."""
        return self.place == CLUSTER

    @property
    def on_hosts(self) -> bool:
        """Whether it is over emulated hosts."""
        return self.place == HOSTS

    @property
    def container(self) -> str:
        """On several hosts, the container that its ranks run in; "" for the hosts' own files."""
        return self.runtime if (self.on_cluster or self.on_hosts) and self.is_container else ""

    @property
    def has_engine(self) -> bool:
        """Whether a container engine runs its launches, in a profile and a layout each."""
        return self.runtime in ENGINES

    @property
    def is_container(self) -> bool:
        """Whether its launches run in a container, or in the image's files without one."""
        return self.runtime != BARE_HOST.kind

    @property
    def in_names(self) -> str:
        """The text as names of files and containers may hold it."""
        return str(self).replace(":", "-")


def check_hosts(count: int, rate: str) -> None:
    """Refuse emulated hosts that cannot be.

    Raises:
        SpecError: with what can be.
    """
    if not 1 <= count <= MOST_HOSTS:
        raise SpecError(f"{count} hosts were asked for; there can be 1 to {MOST_HOSTS}")
    parse_rate(rate)


def without_user_namespace(profiles: Iterable[str], runtimes: Iterable[str]) -> str:
    """Why these runtimes cannot have the profile USERNS; "" where they can, or none asks for it."""
    if USERNS not in profiles or DOCKER.kind not in runtimes:
        return ""
    return (
        f"--profiles {USERNS} gives one container a user namespace, and Docker has one for all of "
        "its containers or for none (userns-remap): ask for --env host,podman"
    )


BARE_HOST, DOCKER = EnvironmentId("host"), EnvironmentId("docker")
_HERE = ("host", "userland", "docker", "podman", "charliecloud", "apptainer")
ENVIRONMENTS = tuple(map(EnvironmentId, _HERE))
"""The environments of this machine, in the order of figures."""
ON_CLUSTER = tuple(map(EnvironmentId, (CLUSTER, *(f"{CLUSTER}-{name}" for name in CONTAINERS))))
"""The environments of an allocation."""
RUNTIMES = tuple(dict.fromkeys((*_HERE, *CONTAINERS)))
"""What runs ranks; each has its file in experiments/environments."""


def machine_names() -> list[str]:
    """The emulated machines."""
    return sorted(path.stem for path in MACHINES.glob("*.toml"))


def emulated() -> tuple[EnvironmentId, ...]:
    """The environments in emulated machines."""
    return tuple(EnvironmentId(kind, name) for kind in (VM, VM_DOCKER) for name in machine_names())
