"""Experiment -> randomised, paired blocks of launches. Pure: one seed, one schedule."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from experiments.bound import COPY
from experiments.spec import (
    ENGINES,
    Experiment,
    Factors,
    Launches,
    Measurement,
    in_docker_there,
    machine_of,
)

FORMAT = 2  # of every file that a campaign writes; formats.py has what readers take
HOST = "host"
TWIN = "host-again"  # the A/A arm: the host once more
ALONE = "host-alone"  # the host once more, without the other arms: one launch of a campaign
ALONE_FROM = 6  # blocks of a campaign; with fewer nothing can be claimed of its ratios anyway
HARNESS = "harness"  # the program that every arm runs, but those of an external one
EXTERNAL_MPI = {"IMB": "impi"}
"""The MPI that an external program is linked with; such a program takes no turns."""


@dataclass(frozen=True)
class Cell:
    """One combination of the factors that vary inside a launch; bytes is per rank."""

    operation: str
    transport: str
    kind: str
    locality: str
    bytes: int
    buffers: str = "arena"

    @property
    def memory(self) -> tuple[str, str, str]:
        """Kind, locality and buffers: cells that agree in these share a rank's arrays."""
        return self.kind, self.locality, self.buffers


@dataclass(frozen=True)
class Arm:
    """What is compared within a block; profile and layout are "" where there is no container."""

    name: str
    environment: str
    profile: str = ""
    layout: str = ""
    program: str = HARNESS


def named(block: int, arm: str, beside: str = "") -> str:
    """A launch's name within its campaign: 0003-docker-tuned-one; see Launch for `beside`."""
    return f"{block:04d}-{arm}" + (f"-beside-{beside}" if beside else "")


@dataclass(frozen=True)
class Launch:
    """One start of the MPI job, container start included.

    Attributes:
        beside: of the reference arm's launches in a block of pairs, but for its first: the arm
            that it takes turns with.
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

    @property
    def name(self) -> str:
        """Names the launch within its campaign: 0003-docker-tuned-one."""
        return named(self.block, self.arm, self.beside)

    @property
    def takes_turns(self) -> bool:
        """Whether its ranks can sleep while those of other arms measure."""
        return self.program not in EXTERNAL_MPI and not machine_of(self.environment)

    @property
    def plan(self) -> tuple[Cell, ...]:
        """The cells kind by kind, each kind and size preceded by the copy that bounds it.

        Kinds and localities come in the order of their first cells, since one has buffers at a
        time; within one the cells keep their order.
        """
        memories = list(dict.fromkeys(cell.memory for cell in self.cells))
        found: dict[Cell, None] = {}
        for cell in sorted(self.cells, key=lambda cell: memories.index(cell.memory)):
            bounded = {(each.memory, each.bytes) for each in found}
            if (cell.memory, cell.bytes) not in bounded:
                found[replace(cell, operation=COPY)] = None
            found[cell] = None
        return tuple(found)

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
        )


@dataclass(frozen=True)
class Block:
    """One launch per arm, which take turns; MPI, ranks, binding and cells are alike in all."""

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
        places = list(product(asked.mpis, asked.ranks, asked.bindings))
        rng.shuffle(places)
        for mpi, ranks, binding in places:
            blocks.append(_block(experiment, len(blocks), mpi, ranks, binding, rng))
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
    several = [key for key in forms if len({getattr(launch, key) for launch in launches}) > 1]
    found = {}
    for launch in launches:
        place = ", ".join(forms[key].format(getattr(launch, key)) for key in several)
        found[launch.name] = f" ({place})" if place else ""
    return found


def arms(asked: Launches, mpi: str) -> list[Arm]:
    """The arms of a block with that MPI.

    An emulated machine has no twin: a noise floor is of use to times, and its times claim nothing.
    """
    found = []
    for name in asked.environments:
        if name == HOST:
            found.append(Arm(HOST, HOST))
        elif machine_of(name) and not in_docker_there(name):
            found.append(Arm(_plain(name), name))
        elif name in ENGINES or in_docker_there(name):
            found += [
                Arm(f"{_plain(name)}-{profile}-{layout}", name, profile, layout)
                for profile, layout in product(asked.profiles, asked.layouts)
            ]
        else:
            found.append(Arm(name, name, layout="one"))
    if HOST in asked.environments:
        found += [Arm(TWIN, HOST)] if asked.aa_pair else []
        found += [
            Arm(program.lower(), HOST, program=program)
            for program in asked.external
            if EXTERNAL_MPI.get(program, mpi) == mpi
        ]
    return found


def _plain(environment: str) -> str:
    """As it may stand in the names of files and containers."""
    return environment.replace(":", "-")


def _block(
    experiment: Experiment, number: int, mpi: str, ranks: int, binding: str, rng: random.Random
) -> Block:
    order = arms(experiment.launches, mpi)
    rng.shuffle(order)
    cells = _shuffled_cells(experiment.factors, rng)  # for all arms alike: they take turns
    launches = tuple(
        Launch(
            experiment=experiment.name,
            block=number,
            arm=arm.name,
            environment=arm.environment,
            profile=arm.profile,
            layout=arm.layout,
            program=arm.program,
            mpi=mpi,
            ranks=ranks,
            binding=binding,
            dtype=experiment.factors.dtype,
            measurement=experiment.measurement,
            cells=cells,
        )
        for arm in order
    )
    return Block(number, mpi, ranks, binding, launches)


def _shuffled_cells(factors: Factors, rng: random.Random) -> tuple[Cell, ...]:
    every = (
        Cell(*levels)
        for levels in product(
            factors.operations,
            factors.transports,
            factors.kinds,
            factors.localities,
            factors.sizes,
            factors.buffers,
        )
    )
    cells = [
        cell for cell in every if cell.bytes <= factors.largest.get(cell.transport, cell.bytes)
    ]
    rng.shuffle(cells)
    return tuple(cells)
