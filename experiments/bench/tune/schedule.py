"""Trials -> launches, each of which holds all of them in an order of its own. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.bench.question import DTYPE
from experiments.bench.tune.question import Question
from experiments.bench.tune.trials import Cell, Trial
from experiments.model.environment import MPIS
from experiments.model.experiment import Measurement

FLAVOUR = MPIS[0]
"""The MPI that starts all launches: transport direct does the same under each."""


@dataclass(frozen=True)
class Launch:
    """One start of the ranks, in which all values of all thresholds take turns.

    Attributes:
        seed: of the order of cells, and of the turns within each.
    """

    block: int
    ranks: int
    trials: tuple[Trial, ...]
    seed: int
    measurement: Measurement
    dtype: str = DTYPE

    @property
    def name(self) -> str:
        """Names the launch within its folder: 0003-tune."""
        return f"{self.block:04d}-tune"

    def cells(self) -> list[tuple[Trial, Cell]]:
        """Every cell of every trial, in the order in which they are measured."""
        found = [(trial, cell) for trial in self.trials for cell in trial.cells]
        random.Random(self.seed).shuffle(found)
        return found

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Launch":
        """The inverse of dataclasses.asdict."""
        return Launch(
            **{**values}
            | {"trials": tuple(Trial.from_dict(each) for each in values["trials"])}
            | {"measurement": Measurement(**values["measurement"])}
        )


def schedule(question: Question, trials: tuple[Trial, ...], seed: int) -> tuple[Launch, ...]:
    """All launches, in the order in which they run."""
    rng = random.Random(seed)
    return tuple(
        Launch(block, question.ranks, trials, rng.getrandbits(32), question.measurement)
        for block in range(question.blocks)
    )
