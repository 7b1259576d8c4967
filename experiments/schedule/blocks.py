"""Experiment -> randomised, paired blocks of launches. Pure: one seed, one schedule."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, product
from typing import Any

from experiments.model.arms import ALONE, EXTERNAL_MPI, HOST, arms
from experiments.model.contender_names import NO_TRANSPORT, PLAIN
from experiments.model.environment import machine_of
from experiments.model.lower_bound import BARRIER, COPY
from experiments.model.spec import ARENA, MPIS_ARE_ARMS, Experiment, Factors, Measurement

FORMAT = 2  # of every file that a campaign writes; formats.py has what readers take


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
        return (self.operation, self.transport, self.form) == (
            *(cell.operation, cell.transport, cell.form),
        ) and self.bytes in (None, cell.bytes)


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
        without: what it leaves out of its cells.
        seed: of its campaign; the order of its turns comes from it.
    """

    experiment: str
    block: int
    arm: str
    environment: str
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
        return self.program not in EXTERNAL_MPI and not machine_of(self.environment)

    @property
    def spares_peers(self) -> bool:
        """Whether a contender that fails is left out, and the rest measured."""
        return bool(self.setting)

    @property
    def contests(self) -> tuple[tuple[Cell, ...], ...]:
        """The cells that take turns with each other, in the order in which they are measured.

        Kinds and localities come one after the other, in the order of their first cells, since one
        has buffers at a time. Each kind and size is preceded by the copy that bounds it.
        """
        memories = list(dict.fromkeys(cell.memory for cell in self.cells))
        found: dict[Contest, list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: memories.index(cell.memory)):
            if any(each.covers(cell) for each in self.without):
                continue
            copy = replace(cell, operation=COPY, transport=NO_TRANSPORT, form=PLAIN)
            if cell.operation != BARRIER:
                found.setdefault(copy.contest, [copy])
            found.setdefault(cell.contest, []).append(cell)
        return tuple(map(tuple, found.values()))

    @property
    def plan(self) -> tuple[Cell, ...]:
        """All cells of the contests, in their order."""
        return tuple(chain.from_iterable(self.contests))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as the harness reads them."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Launch":
        """The inverse of to_dict."""
        return Launch(
            **values
            | {"cells": tuple(Cell(**cell) for cell in values["cells"])}
            | {"measurement": Measurement(**values["measurement"])}
            | {"without": tuple(LeftOut(**each) for each in values.get("without", ()))}
        )


@dataclass(frozen=True)
class Block:
    """One launch per arm, which take turns; MPI, ranks, binding and cells are alike in all.

    Where the arms are MPIs, `mpi` is "", and a launch has those of the cells that its MPI does.
    """

    number: int
    mpi: str
    ranks: int
    binding: str
    launches: tuple[Launch, ...]


def schedule(experiment: Experiment, seed: int) -> tuple[Block, ...]:
    """All blocks of a campaign, in the order in which they run.

    Each replicate visits every combination of MPI, ranks and binding once, in random order, so that
    a slow drift of the machine falls on all of them alike.
    """
    rng = random.Random(seed)
    blocks: list[Block] = []
    for _ in range(experiment.launches.blocks):
        asked = experiment.launches
        mpis = ("",) if asked.arms == MPIS_ARE_ARMS else asked.mpis
        places = list(product(mpis, asked.ranks, asked.bindings))
        rng.shuffle(places)
        for mpi, ranks, binding in places:
            block = _block(experiment, len(blocks), mpi, ranks, binding, rng)
            launches = tuple(replace(launch, seed=seed) for launch in block.launches)
            blocks.append(replace(block, launches=launches))
    return tuple(blocks)


def alone(block: Block) -> Launch | None:
    """The reference arm of a block without company; None where the block has none."""
    host = [each for each in block.launches if each.arm == HOST and each.takes_turns]
    return replace(host[0], arm=ALONE) if host else None


def varied(launches: Sequence[Launch]) -> dict[str, str]:
    """{name: where these vary its MPI, ranks and binding: " (4 ranks, spread)"}.

    Blocks are numbered over every MPI, rank count and binding: a number alone looks like one more
    replicate.

    Args:
        launches: all of a campaign.
    """
    forms = {"mpi": "{}", "ranks": "{} ranks", "binding": "{}"}
    if any(launch.setting for launch in launches):
        del forms["mpi"]  # those of a block run at the same time
    several = [key for key in forms if len({getattr(launch, key) for launch in launches}) > 1]
    found = {}
    for launch in launches:
        place = ", ".join(forms[key].format(getattr(launch, key)) for key in several)
        found[launch.name] = f" ({place})" if place else ""
    return found


def _block(
    experiment: Experiment, number: int, mpi: str, ranks: int, binding: str, rng: random.Random
) -> Block:
    factors = experiment.factors
    every = _shuffled_cells(factors, rng)  # for all arms alike: they take turns
    cells = {arm: tuple(filter(arm.measures, every)) for arm in arms(experiment.launches, mpi)}
    order = [arm for arm, own in cells.items() if own]
    rng.shuffle(order)
    launches = tuple(
        Launch(
            experiment=experiment.name,
            block=number,
            arm=arm.name,
            environment=arm.environment,
            profile=arm.profile,
            layout=arm.layout,
            program=arm.program,
            mpi=arm.mpi or mpi,
            ranks=ranks,
            binding=binding,
            dtype=factors.dtype,
            measurement=experiment.measurement,
            cells=cells[arm],
            setting=arm.setting,
        )
        for arm in order
    )
    return Block(number, mpi, ranks, binding, launches)


def _shuffled_cells(factors: Factors, rng: random.Random) -> tuple[Cell, ...]:
    every = {
        Cell(op, transport, kind, locality, 0 if op == BARRIER else size, buffers, form): None
        for op, transport, kind, locality, size, buffers, form in product(
            factors.operations,
            factors.transports,
            factors.kinds,
            factors.localities,
            factors.sizes,
            factors.buffers,
            factors.forms,
        )
        if size <= factors.largest.get(transport, size)
    }
    cells = list(every)
    rng.shuffle(cells)
    return tuple(cells)
