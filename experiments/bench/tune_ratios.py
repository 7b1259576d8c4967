"""Samples of launches -> paired ratios of one value's time over another's, by cell. Pure.

Pairs are taken within a turn: their median is the launch's ratio, and launches are what is counted.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.statistics import CONFIDENCE
from experiments.bench.trials import CHOICE, Cell, Trial
from experiments.model.contender_names import DIRECT
from experiments.model.experiment import NUMPY

Samples = NDArray[np.float64]
Contest = tuple[bool, str, int]
"""Whether over ordinary NumPy arrays, operation, bytes per rank."""
Times = Mapping[Contest, Mapping[str, Samples]]
"""Times of one launch: each contender's median seconds of each turn."""


class Compared(NamedTuple):
    """How much faster something is than something else in one cell.

    Attributes:
        value: that is compared with the value in force, of a choice; of the others, the value with
            which the way under test is taken, compared with that with which it is not.
        ratios: of the other's time over its own, one of each launch; above 1 it is faster.
    """

    cell: Cell
    value: int
    ratios: tuple[float, ...]

    @property
    def inverse(self) -> "Compared":
        """How much faster the other is."""
        return self._replace(ratios=tuple(1 / ratio for ratio in self.ratios))


def read(launch: Mapping[str, Any], samples: Mapping[str, Samples]) -> Times:
    """The times of a launch as its files have them."""
    found: dict[Contest, dict[str, Samples]] = {}
    for each in launch["cells"]:
        contest = each["buffers"] == NUMPY, each["operation"], each["bytes"]
        slowest = samples[each["samples"]][each["warmup"] :].max(axis=1)
        times = found.setdefault(contest, {})
        times[each["transport"]] = np.median(slowest.reshape(-1, each["turn"]), axis=1)
    return found


def paired(above: Samples, below: Samples) -> float:
    """The median over turns of the ratio of two contenders' times."""
    turns = min(len(above), len(below))
    return float(np.exp(np.median(np.log(above[:turns] / below[:turns]))))


def compared(trial: Trial, launches: Sequence[Times]) -> tuple[Compared, ...]:
    """Each cell of a trial: of a choice, each value over that in force; else way over way."""
    if trial.way == CHOICE:
        pairs = [(value, DIRECT, trial.contender(value)) for value in trial.values]
    else:
        others = trial.contender(trial.without_way), trial.contender(trial.with_way)
        pairs = [(trial.with_way, *others)]
    return tuple(
        Compared(cell, value, _ratios(trial, cell, above, below, launches))
        for value, above, below in pairs
        for cell in trial.cells
    )


def noise(trials: Iterable[Trial], launches: Sequence[Times]) -> float:
    """How far the same way strays from itself; NaN where no trial parts two ways.

    The value in force goes one of the two ways in each cell, and so does one of the two extremes,
    by another communicator.

    Returns:
        The 95th percentile over cells of |ratio - 1|, each ratio the median over launches.
    """
    strays = []
    for trial in trials:
        if trial.way == CHOICE:
            continue
        for cell in trial.cells:
            twin = trial.with_way if trial.in_force(cell.at) else trial.without_way
            ratios = _ratios(trial, cell, DIRECT, trial.contender(twin), launches)
            strays.append(abs(float(np.median(ratios)) - 1) if ratios else math.nan)
    return float(np.nanquantile(strays, CONFIDENCE)) if strays else math.nan


def _ratios(
    trial: Trial, cell: Cell, above: str, below: str, launches: Sequence[Times]
) -> tuple[float, ...]:
    contest = trial.private, cell.operation, cell.bytes
    return tuple(paired(times[contest][above], times[contest][below]) for times in launches)
