"""A user's own program, and where it is run to learn what a container costs it. Pure."""

import os
import re
import shlex
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from experiments.model.arms import HOST, USERLAND
from experiments.model.environment import (
    ENGINES,
    HOSTS,
    PROFILES,
    PROFILES_OF_ALL,
    EnvironmentId,
    check_hosts,
    without_user_namespace,
)
from experiments.model.errors import ExperimentsError
from experiments.model.quantities import check_rank_counts

ENVIRONMENTS = (HOST, USERLAND, *ENGINES)
"""Where a user's program can be run, in the order of reports; emulated hosts beside, by numbers."""
FORMAT = 1
FEWEST, USUAL = 1, 10
"""Blocks: at least, and where none are given. Below 6 a ratio has no interval."""
KEEPER, LIBRARY, LARGE, SOCKET = "keeper", "gate.so", "gate-large.so", "gate"
"""What each run has in a folder: a program, two builds of a library, and where the driver listens.
The second build is for an MPI that has calls with counts of 64 bits."""
LINE = "line"
"""The program that measures a cache line between two CPUs; the driver's own."""
BAND_NAMES = ("", "up to 256 B", "up to 4 KiB", "up to 64 KiB", "up to 1 MiB", "above 1 MiB")
"""Ranges of the sizes of calls, as gate.c has them; the first one is of calls without one."""
BANDS = len(BAND_NAMES)
SHELL = {"<", ">", ">>", "2>", "|", "||", "&", "&&", ";"}
"""Words that mean something to a shell alone."""
POLLING = {"Test", "Testany", "Testall", "Testsome", "Iprobe", "Improbe", "Request_get_status"}
"""Calls that a program repeats while it waits: their number is no progress."""


class Timed(StrEnum):
    """What of a program is timed."""

    RANKS = "from MPI_Init to MPI_Finalize"
    WHOLE = "the whole process"


@dataclass
class CallCount:
    """The calls of one function of MPI on one rank, or the sum over ranks.

    Attributes:
        bytes: that were given, in calls that have one count and one datatype.
        calls, nanoseconds: for each of BAND_NAMES.
    """

    bytes: int = 0
    calls: list[int] = field(default_factory=lambda: [0] * BANDS)
    nanoseconds: list[int] = field(default_factory=lambda: [0] * BANDS)

    def add(self, other: "CallCount") -> None:
        """Take another rank's in."""
        self.bytes += other.bytes
        self.calls = [a + b for a, b in zip(self.calls, other.calls, strict=True)]
        self.nanoseconds = [a + b for a, b in zip(self.nanoseconds, other.nanoseconds, strict=True)]


@dataclass(frozen=True)
class ProgramArm:
    """One place where the program runs.

    Attributes:
        environment: one of ENVIRONMENTS, or emulated hosts: "hosts:2x1gbit".
        profile: of a container; "" elsewhere.
        twin: the reference once more (A/A), the host from a second copy of its files.
        counted: whether its calls of MPI are counted.
    """

    environment: str
    profile: str = ""
    twin: bool = False
    counted: bool = True

    @property
    def name(self) -> str:
        """Unique within a run: "host", "docker-default"."""
        name = self.place.in_names + (f"-{self.profile}" if self.profile else "")
        if self.twin:
            return f"{name}-again"
        return name if self.counted else f"{name}-uncounted"

    @property
    def base(self) -> str:
        """The name of the arm with a first run, which this arm repeats."""
        return replace(self, twin=False, counted=True).name

    @property
    def place(self) -> EnvironmentId:
        """Its environment, parsed."""
        return EnvironmentId.parse(self.environment)

    @property
    def in_container(self) -> bool:
        """Whether an engine runs it."""
        return self.environment in ENGINES

    @property
    def has_image(self) -> bool:
        """Whether it runs from the files of the image, not from those of this machine."""
        return self.environment != HOST and not self.place.on_hosts


@dataclass(frozen=True)
class ProgramRequest:
    """What a user asks: a program, where to run it, and how often.

    Attributes:
        program: its words; in an image they are looked up there.
        host_program: its words on this machine, where they differ.
        image: "" where no environment needs one.
        ranks: an mpiexec starts so many; 0 where the words bring a launcher, or there is no MPI.
        options: further words of `docker run` or `podman run`.
        workdir: the folder that each run gets a fresh copy of, to work in; "" for none.
        metric: a regular expression; its first group is the program's own figure, in its output.
        seconds: of each run that are measured, from MPI_Init on; 0.0: to its end.
        environments, profiles: see ENVIRONMENTS and profiles.py.
        uncounted: whether a run of the reference without counters shows what counting costs.
    """

    program: tuple[str, ...]
    host_program: tuple[str, ...]
    image: str = ""
    ranks: int = 0
    options: tuple[str, ...] = ()
    workdir: str = ""
    metric: str = ""
    seconds: float = 0.0
    environments: tuple[str, ...] = (HOST,)
    profiles: tuple[str, ...] = ("default",)
    blocks: int = USUAL
    uncounted: bool = False
    format: int = field(default=FORMAT)

    @property
    def arms(self) -> list[ProgramArm]:
        """The reference first, then its A/A pair, then the others."""
        reference, *others = [
            ProgramArm(environment, profile)
            for environment in self.environments
            for profile in (self.profiles if environment in ENGINES else ("",))
        ]
        uncounted = [replace(reference, counted=False)] if self.uncounted else []
        return [reference, replace(reference, twin=True), *uncounted, *others]

    def words(self, arm: ProgramArm) -> tuple[str, ...]:
        """The command of an arm, with the launcher that starts its ranks."""
        own = self.program if arm.has_image else self.host_program
        return ("mpiexec", "-n", str(self.ranks), *own) if self.ranks else own


def asked(
    program: str,
    host_program: str = "",
    image: str = "",
    ranks: str = "",
    environments: str = "",
    profiles: str = "",
    options: str = "",
    workdir: str = "",
    metric: str = "",
    seconds: str = "",
    blocks: int | None = None,
    uncounted: bool = False,
    mend: bool = False,
    cores: int = 1,
) -> ProgramRequest:
    """What flags ask for, checked as far as that needs nothing but their text and this machine.

    Args:
        mend: whether containers also run with what mends most: the profile tuned.
        cores: that ranks may use here.

    Raises:
        ExperimentsError: naming the flag.
    """
    words = _words("program", program)
    if not any(words):
        raise ExperimentsError("--program is empty; name one, such as --program './a.out -n 100'")
    if of_shell := sorted({*words, *_words("host-program", host_program)} & SHELL):
        raise ExperimentsError(
            f"{of_shell[0]} in a program's line is a shell's, and none is asked: write "
            f"--program {shlex.quote(shlex.join(('sh', '-c', program)))}"
        )
    names = _environments(environments or f"{HOST}{',docker' if image else ''}")
    needing = [name for name in names if ProgramArm(name).has_image]
    if needing and not image:
        raise ExperimentsError(
            f"{needing[0]} runs the program from an image: name one with --image, or measure the "
            "host alone with --env host"
        )
    if image and not needing:
        raise ExperimentsError("--image is given and no environment runs it: add --env host,docker")
    if (profiles or mend) and not set(names) & set(ENGINES):
        flag = "--profiles are" if profiles else "--mend is"
        raise ExperimentsError(f"{flag} of containers: add --env host,docker")
    asked = profiles or "default"
    asked = ",".join(PROFILES_OF_ALL) if asked == "all" else asked
    allowed = _profiles(f"{asked}{',tuned' if mend else ''}")
    if refusal := without_user_namespace(allowed, names):
        raise ExperimentsError(refusal)
    count = _number("ranks", ranks, whole=True)
    if count:
        check_rank_counts((int(count),), cores)
    elif spread := [name for name in names if ProgramArm(name).place.on_hosts]:
        raise ExperimentsError(
            f"{spread[0]} starts ranks on its hosts in turn: say how many with "
            "--ranks, and leave mpiexec out of --program"
        )
    try:
        groups = re.compile(metric).groups
    except re.error as error:
        raise ExperimentsError(f"--metric {metric!r} is no regular expression: {error}") from None
    if metric and groups < 1:
        raise ExperimentsError(
            f"--metric {metric!r} has no group: put the number in parentheses, such as "
            r"'steps/s: ([\d.]+)'"
        )
    if workdir and not Path(workdir).is_dir():
        raise ExperimentsError(f"--workdir {workdir} is no folder; each run gets a copy of one")
    return ProgramRequest(
        words,
        _found_from_here(_words("host-program", host_program) or words),
        image,
        int(count),
        _words("options", options),
        workdir,
        metric,
        _number("seconds", seconds),
        names,
        allowed,
        blocks or USUAL,
        uncounted,
    )


def _found_from_here(words: tuple[str, ...]) -> tuple[str, ...]:
    """The host's words: runs work in copies of the folder, from which another way leads out."""
    out = os.path.normpath(words[0]).startswith("..")
    return (str(Path.cwd() / words[0]), *words[1:]) if out else words


def _words(flag: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ExperimentsError(f"--{flag} {text!r} is no command line: {error}") from None


def _environments(text: str) -> tuple[str, ...]:
    """The environments of --env.

    Raises:
        ExperimentsError: one is none of a user's program.
    """
    given = ENVIRONMENTS if text == "all" else tuple(dict.fromkeys(text.split(",")))
    for name in given:
        place = EnvironmentId.parse(name)
        if place.kind == HOSTS and place.hosts:
            check_hosts(place.hosts, place.rate)
        elif place.on_cluster:
            raise ExperimentsError(
                f"--env {name!r}: runs of a program are stopped and continued in turns, and the "
                "driver reaches no process on another node; run it on a node of the allocation, "
                f"or with ranks on emulated hosts: --env {HOST},{HOSTS}:2x1gbit"
            )
        elif name not in ENVIRONMENTS:
            raise ExperimentsError(
                f"--env {name!r}: a user's program runs in {', '.join(ENVIRONMENTS)}, or with "
                f"ranks on emulated hosts: {HOSTS}:2x1gbit"
            )
    return given


def _profiles(text: str) -> tuple[str, ...]:
    given = tuple(dict.fromkeys(text.split(",")))
    for name in given:
        if name not in PROFILES:
            raise ExperimentsError(f"--profiles {name!r} is not one of {', '.join(PROFILES)}")
    return given


def _number(flag: str, text: str, whole: bool = False) -> float:
    """0.0 where the flag is not given."""
    if not text:
        return 0.0
    pattern = r"\d{1,6}" if whole else r"\d{1,6}(\.\d{1,6})?"
    if not re.fullmatch(pattern, text) or float(text) == 0:
        kind = "whole number" if whole else "number"
        raise ExperimentsError(f"--{flag} {text!r} must be a {kind} above 0")
    return float(text)
