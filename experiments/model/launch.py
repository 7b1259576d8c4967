"""A launch, the cells that it measures, and the block that it belongs to. Values only.

Ranks read this; what a user may ask for is experiments.model.experiment's, for the driver alone.
"""

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, get_args, get_origin, get_type_hints

from experiments.model.contender_names import CALLS, NO_TRANSPORT, PLAIN
from experiments.model.environment import EnvironmentId
from experiments.model.lower_bound import BARRIER, COPY
from experiments.model.workloads import COMPUTING, WORKLOADS

FORMAT = 2  # of every file that a campaign writes; formats.py has what readers take

OPERATIONS = tuple(name for name in CALLS if name != BARRIER)
TRANSPORTS = ("direct", "hierarchical", "mpi", "pickle")
BUFFERS = ARENA, PRIVATE, NUMPY = "arena", "private", "numpy"
HARNESS = "harness"
"""The program that every arm runs, except the arms of external programs."""
EXTERNAL = ("IMB", "threads", "multiprocessing")
"""A benchmark in C, and Python's own means without an MPI (experiments/baselines)."""
EXTERNAL_MPI = {"IMB": "impi"}
"""The MPI that an external program is linked with; such a program takes no turns."""
BINDINGS = PACKED, SPREAD = "packed", "spread"
CADENCES = ("isolated", "streaming")
CACHES = ("warm", "rotating")

UNBOUNDED = {BARRIER, *WORKLOADS} - {*COMPUTING}
"""Operations that have no copy or computation beside them."""

Contest = tuple[str, tuple[str, str, str], int]
"""Operation, memory and bytes."""


@dataclass(frozen=True)
class Cell:
    """One combination of the factors that vary inside a launch; bytes is per rank."""

    operation: str
    transport: str
    kind: str
    locality: str
    bytes: int
    buffers: str = ARENA
    form: str = PLAIN

    @property
    def memory(self) -> tuple[str, str, str]:
        """Kind, locality and buffers: cells that agree in these share a rank's arrays."""
        return self.kind, self.locality, self.buffers

    @property
    def contest(self) -> Contest:
        """What it has in common with those that it takes turns with."""
        return self.operation, self.memory, self.bytes


@dataclass(frozen=True)
class LeftOut:
    """What an arm does not measure, because it hung or crashed there before.

    Attributes:
        bytes: None: messages of any size.
        why: "failed with exit code 139", "does not answer".
    """

    operation: str
    transport: str
    form: str
    bytes: int | None
    why: str

    def covers(self, cell: Cell) -> bool:
        """Whether that cell is left out."""
        mine = (self.operation, self.transport, self.form)
        return mine == (cell.operation, cell.transport, cell.form) and (
            self.bytes in (None, cell.bytes)
        )


@dataclass(frozen=True)
class Measurement:
    """How each cell is timed; experiments.model.experiment.Timing says what the fields mean."""

    cadence: str = CADENCES[0]
    cache: str = CACHES[0]
    time_cap: float = 0.5
    min_iterations: int = 10
    max_iterations: int = 1000
    emulate_hbw: bool = False


def named(block: int, arm: str, beside: str = "") -> str:
    """A launch's name within its campaign: 0003-docker-tuned-one; see Launch for `beside`."""
    return f"{block:04d}-{arm}" + (f"-beside-{beside}" if beside else "")


@dataclass(frozen=True)
class Launch:
    """One start of the MPI job, container start included.

    Attributes:
        beside: of the reference arm's launches in a block of pairs, but for its first: the arm
            that it takes turns with.
        setting: of its MPI, as experiments.model.mpi_settings names it; "" where MPIs are no arms.
        hbw_policy: that Intel MPI is asked for, one of mpi_settings.HBW_POLICIES; "" for none.
        without: what it leaves out of its cells.
        seed: of its campaign; the order of its turns comes from it.
    """

    experiment: str
    block: int
    arm: str
    environment: EnvironmentId
    profile: str
    layout: str
    program: str
    mpi: str
    ranks: int
    binding: str
    dtype: str
    measurement: Measurement
    cells: tuple[Cell, ...]
    beside: str = ""
    setting: str = ""
    hbw_policy: str = ""
    without: tuple[LeftOut, ...] = ()
    seed: int = 0

    @property
    def name(self) -> str:
        """Names the launch within its campaign: 0003-docker-tuned-one."""
        return named(self.block, self.arm, self.beside)

    @property
    def order(self) -> random.Random:
        """Draws the turns: alike whenever this launch of this campaign is repeated."""
        return random.Random(f"{self.seed} {self.name}")

    @property
    def takes_turns(self) -> bool:
        """Whether its ranks can sleep while those of other arms measure."""
        return self.program not in EXTERNAL_MPI and not self.environment.is_emulated

    @property
    def spares_peers(self) -> bool:
        """Whether a contender that fails is left out, and the rest measured."""
        return bool(self.setting)

    @property
    def contests(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells that take turns with each other, in the order in which they are measured.

        Kinds and localities come one after the other, in the order of their first cells, since one
        has buffers at a time. Each kind and size is preceded by the copy that bounds it, a
        workload that computes by its computation alone.
        """
        memories = list(dict.fromkeys(cell.memory for cell in self.cells))
        by_contest: dict[Contest, list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: memories.index(cell.memory)):
            if any(loss.covers(cell) for loss in self.without):
                continue
            bounding = cell.operation if cell.operation in COMPUTING else COPY
            bound = replace(cell, operation=bounding, transport=NO_TRANSPORT, form=PLAIN)
            if cell.operation not in UNBOUNDED:
                by_contest.setdefault(bound.contest, [bound])
            by_contest.setdefault(cell.contest, []).append(cell)
        return tuple(map(tuple, by_contest.values()))

    @property
    def plan(self) -> tuple[Cell, ...]:
        """All cells of the contests, in their order."""
        return tuple(chain.from_iterable(self.contests))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the harness reads them."""
        return asdict(self) | {"environment": str(self.environment)}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Launch":
        """The inverse of to_dict."""
        launch: Launch = from_plain(Launch, values)
        return launch


@dataclass(frozen=True)
class Block:
    """One launch per arm, which take turns; MPI, ranks, binding and cells are alike in all.

    Where the arms are MPIs, a launch has those of the cells that its MPI does.
    """

    number: int
    launches: tuple[Launch, ...]


def from_plain(kind: Any, value: Any) -> Any:
    """A value of JSON as a type: dataclasses of tables, without the keys that they do not name."""
    if kind is EnvironmentId:
        return EnvironmentId.parse(value)
    if is_dataclass(kind):
        fields, nested = _fields(kind)  # type: ignore[arg-type]
        known = {name: part for name, part in value.items() if name in fields}
        for name in nested.keys() & known.keys():
            known[name] = from_plain(nested[name], known[name])
        return kind(**known)  # type: ignore[operator]
    if value is None:
        return None
    inner = get_args(kind)[0]
    if get_origin(kind) is not tuple:  # "inner | None"
        return from_plain(inner, value)
    return tuple(from_plain(inner, part) for part in value) if is_dataclass(inner) else tuple(value)


@cache
def _fields(kind: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The types of a dataclass's fields, and of those that are no plain values of JSON."""
    types = get_type_hints(kind)
    nested = {
        name: field_type
        for name, field_type in types.items()
        if is_dataclass(field_type)
        or get_origin(field_type) is tuple
        or any(map(is_dataclass, get_args(field_type)))
    }
    return types, nested
