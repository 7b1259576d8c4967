"""What a launch found, as types: made once, of the JSON that store.py has checked.

A field that a file of before lacks has the default that it means; one that no type names is left
out, but for what launches recorded of their surroundings, which tables list in full.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.model.contender_names import PLAIN
from experiments.model.environment import NOT_EMULATED
from experiments.model.launch import ARENA, HARNESS, Launch, from_plain
from experiments.results.recorded import COLUMN


@dataclass(frozen=True)
class Links:
    """Bytes that the link of each host sent and received in so many operations of a cell."""

    operations: int
    sent: tuple[int, ...]
    received: tuple[int, ...]


@dataclass(frozen=True)
class CellResult:
    """A cell of a launch; docs/results-format.md says what the fields mean.

    Attributes:
        skipped, wrong: why it has no samples; "" where it was measured.
        samples, begins: keys of the launch's arrays; "" where there is none.
    """

    operation: str
    transport: str
    kind: str
    locality: str
    bytes: int
    buffers: str = ARENA
    form: str = PLAIN
    skipped: str = ""
    wrong: str = ""
    samples: str = ""
    begins: str = ""
    warmup: int = 0
    group: int = 1
    turn: int = 0
    contest: int = 0
    barrier: str = ""
    emulated: bool = False
    columns: tuple[str, ...] = ()
    links: Links | None = None


@dataclass(frozen=True)
class Pool:
    """The buffers of a rank in one kind, locality and form.

    Attributes:
        bytes: None where an older result does not say.
        placement: {node: bytes there}; `placement_after` the same once all was timed.
    """

    kind: str
    locality: str
    emulated: bool
    nodes: tuple[int, ...]
    source: str
    placement_method: str
    placement: Mapping[str, int]
    placement_after: Mapping[str, int] | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Asleep:
    """Seconds that a rank slept, and seconds of CPU that it used meanwhile."""

    seconds: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True)
class Disturbance:
    """What a rank's CPU did, in seconds; None where the kernel does not count."""

    seconds: float
    load: tuple[float | None, ...]
    busy: float | None
    stolen: float | None
    own: float


@dataclass(frozen=True)
class Rank:
    """A rank and its buffers; older results have no disturbance."""

    rank: int
    cpu: int
    pools: tuple[Pool, ...] = ()
    asleep: Asleep = Asleep()
    disturbance: Disturbance | None = None


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node; distances and initiators as the firmware says."""

    id: int
    cpus: tuple[int, ...]
    total_bytes: int
    is_hbm: bool
    distances: Mapping[str, int]
    initiators: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hbm:
    """What decided which nodes are HBM."""

    rule: str


@dataclass(frozen=True)
class Topology:
    """The NUMA nodes that a launch saw."""

    nodes: tuple[NumaNode, ...]
    hbm: Hbm


@dataclass(frozen=True)
class Host:
    """A host of a launch on several, and the ranks there."""

    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Facts:
    """What a launch recorded of where it ran; `recorded` has all of it as it is stored."""

    recorded: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    datapath: Mapping[str, Any] = field(default_factory=dict)
    topology: Topology | None = None
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True)
class External:
    """What is unlike between an external program and the harness."""

    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """A finished launch.

    Attributes:
        company: the launches that took turns, itself among them; none where it took none.
        command: "" of a program that stores none.
        began: seconds since the epoch; None where that is not stored.
    """

    launch: Launch
    cells: tuple[CellResult, ...]
    facts: Facts
    samples_sha256: str = ""
    ranks: tuple[Rank, ...] = ()
    company: tuple[str, ...] = ()
    command: str = ""
    began: float | None = None
    external: External = External()

    @staticmethod
    def of(values: Mapping[str, Any]) -> "Result":
        """Of a launch's JSON, which has been checked. A cell without a contest is one alone."""
        cells = [{"contest": number} | cell for number, cell in enumerate(values["cells"])]
        made = {
            "launch": {"program": HARNESS, **values["launch"]},
            "facts": {**values["environment"], "recorded": values["environment"]},
            "cells": cells,
        }
        result: Result = from_plain(Result, {**values, **made})
        return result

    @property
    def name(self) -> str:
        """Names the launch within its campaign: 0003-docker-tuned-one."""
        return self.launch.name

    @property
    def measured(self) -> list[CellResult]:
        """The cells that have samples."""
        return [cell for cell in self.cells if cell.samples]

    def factors(self, cell: CellResult) -> dict[str, Any]:
        """The factors of a cell by their names, those between launches among them."""
        asked = {**vars(self.launch), **vars(self.launch.measurement), **vars(cell)}
        return asked | {"environment": str(self.launch.environment), COLUMN: self.machine}

    @property
    def machine(self) -> str:
        """The emulated machine, "knl-snc4-flat (tcg)"; else NOT_EMULATED, as of older launches."""
        return self.facts.machine.get("emulated", NOT_EMULATED)


@dataclass(frozen=True)
class Failure:
    """Why a launch failed that is not finished yet."""

    arm: str
    mpi: str
    ranks: int
    reason: str
