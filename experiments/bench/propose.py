"""Paired ratios -> a value for each threshold. Pure.

A value is proposed where it is certainly faster: the whole 95 % interval of the ratio, over all
operations of a size together, is beyond what the same way strays from itself, and no operation's
interval is below 1. Where nothing is certain, a threshold stays as it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from experiments.analysis.statistics import FEWEST_BLOCKS, Interval, median_ratio
from experiments.bench.trials import CHOICE, FROM, UP_TO, Cell, Trial
from experiments.bench.tune_ratios import Compared

TOO_FEW = f"fewer than {FEWEST_BLOCKS} launches: no interval, so nothing is certain"
NOTHING = "no other value is certainly faster"
ALTERNATES = "no one value: the faster way changes more than once with the size"


@dataclass(frozen=True)
class Proposal:
    """A threshold's value, and why.

    Attributes:
        gain: how much faster the proposed value is in `cell`, where its interval is highest; None
            where the value stays.
        why: what is to be known where it stays; "" where it changes.
    """

    variable: str
    unit: str
    now: int
    proposed: int
    gain: Interval | None = None
    cell: Cell | None = None
    why: str = ""

    @property
    def changes(self) -> bool:
        """Whether another value is proposed than the one in force."""
        return self.proposed != self.now


def propose(trial: Trial, found: Sequence[Compared], floor: float) -> Proposal:
    """What a trial's ratios say.

    Args:
        floor: ratios.noise(); less than it is not claimed. NaN: there is none.
    """
    least = 1 + max(0.0, np.nan_to_num(floor))
    blocks = min((len(each.ratios) for each in found), default=0)
    if blocks < FEWEST_BLOCKS:
        return _kept(trial, TOO_FEW)
    return (_choose if trial.way == CHOICE else _cross)(trial, found, least)


def _kept(trial: Trial, why: str) -> Proposal:
    return Proposal(trial.variable, trial.unit, trial.now, trial.now, why=why)


def _choose(trial: Trial, found: Sequence[Compared], least: float) -> Proposal:
    """The value that is fastest over all cells, among those that certainly gain."""
    by_value = {value: [each for each in found if each.value == value] for value in trial.values}
    certain = {
        value: together(cells).value
        for value, cells in by_value.items()
        if _verdict(cells, least) > 0
    }
    if not certain:
        return _kept(trial, NOTHING)
    best = max(certain, key=lambda value: certain[value])
    return _changed(trial, best, by_value[best])


class _Step(NamedTuple):
    """A boundary moved over one more size.

    Attributes:
        value: of the threshold after it.
        cells: of that size; a ratio above 1 means that the step is faster there.
    """

    value: int
    cells: Sequence[Compared]


def _cross(trial: Trial, found: Sequence[Compared], least: float) -> Proposal:
    """The boundary, moved over sizes on either side for as long as none of them loses by it."""
    moves = [_worth_taking(steps, least) for steps in _steps(trial, found)]
    taken = [steps for steps, _ in moves if steps]
    if len(taken) == 1:
        (steps,) = taken
        return _changed(trial, steps[-1].value, chain(*(step.cells for step in steps)))
    alternates = taken or any(gains_again for _, gains_again in moves)
    return _kept(trial, ALTERNATES if alternates else NOTHING)


def _steps(trial: Trial, found: Sequence[Compared]) -> tuple[list[_Step], list[_Step]]:
    """Away from the boundary: the steps that send more sizes the way under test, and fewer."""
    sizes = sorted({each.cell.at for each in found}, reverse=trial.way == FROM)
    cells = {at: [each for each in found if each.cell.at == at] for at in sizes}
    more = [_Step(at, cells[at]) for at in sizes if not trial.in_force(at)]
    in_force = [at for at in reversed(sizes) if trial.in_force(at)]
    none = sizes[0] // 2 if trial.way == UP_TO else sizes[0] * 2  # no size goes the way under test
    next_values = [*in_force[1:], none]
    fewer = [
        _Step(value, [each.inverse for each in cells[at]])
        for at, value in zip(in_force, next_values, strict=False)
    ]
    return more, fewer


def _worth_taking(steps: Sequence[_Step], least: float) -> tuple[Sequence[_Step], bool]:
    """The steps up to the last that gains, before the first that loses.

    Returns:
        These, and whether a step beyond one that loses gains again.
    """
    verdicts = [_verdict(step.cells, least) for step in steps]
    until = verdicts.index(-1) if -1 in verdicts else len(verdicts)
    gains = [number for number, verdict in enumerate(verdicts, 1) if verdict > 0]
    within = [number for number in gains if number <= until]
    return steps[: max(within, default=0)], len(within) < len(gains)


def _changed(trial: Trial, value: int, gains: Iterable[Compared]) -> Proposal:
    intervals = [(median_ratio(each.ratios), each.cell) for each in gains]
    gain, cell = max(intervals, key=lambda pair: pair[0].low)
    return Proposal(trial.variable, trial.unit, trial.now, value, gain, cell)


def together(found: Sequence[Compared]) -> Interval:
    """The ratio over several cells: in each launch their geometric mean, then over launches."""
    logs = np.log([each.ratios for each in found])
    return median_ratio(np.exp(logs.mean(axis=0)))


def _verdict(found: Sequence[Compared], least: float) -> int:
    """1: these cells together gain, by more than noise, and none loses; -1: together they lose.

    A loss need not exceed the noise: the more careful mistake is to leave a value as it is.

    Args:
        least: ratio from which a gain is claimed.
    """
    whole = together(found)
    if whole.high < 1:
        return -1
    return int(whole.low > least and all(median_ratio(each.ratios).high >= 1 for each in found))
