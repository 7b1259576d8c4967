"""Experiment -> randomised, paired blocks of launches. Pure: one seed, one schedule."""

import random
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from experiments.spec import Experiment, Factors, Measurement

FORMAT = 1  # of every file that a campaign writes; readers refuse any other
TWIN = "host-again"  # the A/A arm: the host once more


@dataclass(frozen=True)
class Cell:
    """One combination of the factors that vary inside a launch; bytes is per rank."""

    operation: str
    transport: str
    kind: str
    locality: str
    bytes: int


@dataclass(frozen=True)
class Launch:
    """One start of the MPI job, container start included."""

    experiment: str
    block: int
    arm: str
    environment: str
    ranks: int
    binding: str
    dtype: str
    measurement: Measurement
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Names the launch within its campaign: 0003-docker."""
        return f"{self.block:04d}-{self.arm}"

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
    """One launch per arm, back to back, in random order; ranks and binding are the same in all."""

    number: int
    ranks: int
    binding: str
    launches: tuple[Launch, ...]


def schedule(experiment: Experiment, seed: int) -> tuple[Block, ...]:
    """All blocks of a campaign, in the order in which they run.

    Each replicate visits every combination of ranks and binding once, in random order, so that a
    slow drift of the machine falls on all of them alike.
    """
    rng = random.Random(seed)
    blocks: list[Block] = []
    for _ in range(experiment.launches.blocks):
        places = list(product(experiment.launches.ranks, experiment.launches.bindings))
        rng.shuffle(places)
        for ranks, binding in places:
            blocks.append(_block(experiment, len(blocks), ranks, binding, rng))
    return tuple(blocks)


def arms(experiment: Experiment) -> list[tuple[str, str]]:
    """(arm, environment) of each launch in a block."""
    found = [(name, name) for name in experiment.launches.environments]
    if experiment.launches.aa_pair and "host" in experiment.launches.environments:
        found.append((TWIN, "host"))
    return found


def _block(
    experiment: Experiment, number: int, ranks: int, binding: str, rng: random.Random
) -> Block:
    order = arms(experiment)
    rng.shuffle(order)
    launches = tuple(
        Launch(
            experiment=experiment.name,
            block=number,
            arm=arm,
            environment=environment,
            ranks=ranks,
            binding=binding,
            dtype=experiment.factors.dtype,
            measurement=experiment.measurement,
            cells=_shuffled_cells(experiment.factors, rng),
        )
        for arm, environment in order
    )
    return Block(number, ranks, binding, launches)


def _shuffled_cells(factors: Factors, rng: random.Random) -> tuple[Cell, ...]:
    every = (
        Cell(*levels)
        for levels in product(
            factors.operations,
            factors.transports,
            factors.kinds,
            factors.localities,
            factors.sizes,
        )
    )
    cells = [
        cell for cell in every if cell.bytes <= factors.largest.get(cell.transport, cell.bytes)
    ]
    rng.shuffle(cells)
    return tuple(cells)
