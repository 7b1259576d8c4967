"""Turns of launches -> paired ratios of one value's time over another's -> a value per threshold.

Pairs are taken within a turn: their median is the launch's ratio, and launches are what is counted.
A value is proposed where it is certainly faster: the whole 95 % interval of the ratio, over all
operations of a size together, is beyond what the same way strays from itself, and no operation's
interval is below 1. Where nothing is certain, a threshold stays as it is.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import json_value, rows
from experiments.analysis.statistics import CONFIDENCE, FEWEST_BLOCKS, Interval, median_ratio
from experiments.model.contender_names import DIRECT
from experiments.model.trials import CHOICE, FROM, UP_TO, Cell, Trial
from experiments.results.store import ResultsError

Turns = Sequence[float]
"""Median seconds of each turn."""
Times = Mapping[tuple[str, int], Sequence[Mapping[str, Turns]]]
"""Times of one launch, by operation and bytes per rank: of each contender, in each contest."""

TOO_FEW = f"fewer than {FEWEST_BLOCKS} launches: no interval, so nothing is certain"
NOTHING = "no other value is certainly faster"
ALTERNATES = "no one value: the faster way changes more than once with the size"

NOISY = 0.1
"""How far the same way may stray from itself before a reader is warned."""
FETCHES = tuple(f"HBMCOMM_{name}_BYTES" for name in ("FETCH", "FETCH_IDLE", "PUSH"))
NO_FETCH = "process_vm_readv is not possible here: {}"


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


@dataclass(frozen=True)
class Tuned:
    """What a campaign says of the thresholds.

    Attributes:
        proposals: one for each threshold, in the order of the library's table.
        compared: by variable, the ratios that were measured.
        noise: how far the same way strays from itself; NaN where it is unknown.
        notes: one sentence each; what a reader must know before believing a proposal.
    """

    campaign: Campaign
    proposals: tuple[Proposal, ...]
    compared: Mapping[str, tuple[Compared, ...]]
    noise: float
    notes: tuple[str, ...]

    @property
    def exports(self) -> list[str]:
        """Shell lines that put the proposal into force."""
        return [
            f"export {proposal.variable}={proposal.proposed}"
            for proposal in self.proposals
            if proposal.changes
        ]


def tuned(campaign: Campaign) -> Tuned:
    """What the launches of a campaign propose, however many of them are finished.

    Raises:
        ResultsError: transport direct does not run here, or a launch lacks what it was asked.
    """
    for launch in campaign.launches:
        for cell in launch.cells:
            if cell.skipped:
                raise ResultsError(f"these ranks cannot be tuned: {cell.skipped}")
    way = campaign.launches[0].facts.datapath.get("cma", "")
    trials = [
        replace(trial, cells=(), why=NO_FETCH.format(way))
        if way != "works" and trial.variable in FETCHES and trial.cells
        else trial
        for trial in campaign.experiment.factors.trials
    ]
    launches = times(campaign.cells)
    try:
        strays = noise(trials, launches)
        ratios = {trial.variable: compared(trial, launches) for trial in trials if trial.cells}
        proposals = tuple(
            propose(trial, ratios.get(trial.variable, ()), strays) for trial in trials
        )
    except (LookupError, ValueError) as error:
        raise ResultsError(
            f"the launches of {campaign.folder} lack what was asked of them ({error!r}); measure "
            "again: ./inv bench --tune"
        ) from error
    return Tuned(campaign, proposals, ratios, strays, tuple(_notes(campaign, trials, strays)))


def _notes(campaign: Campaign, trials: Iterable[Trial], noise: float) -> Iterator[str]:
    planned = len(campaign.header["schedule"])
    if len(campaign.launches) < planned:
        yield f"{len(campaign.launches)} of {planned} planned launches are finished"
    if noise > NOISY:
        yield "something else runs on these CPUs: on a quiet machine smaller gains show"
    changed = [f"{trial.variable}={trial.now}" for trial in trials if trial.now != trial.default]
    if changed:
        yield f"proposals begin from this environment, not from the defaults: {' '.join(changed)}"
    if campaign.cells["emulated"].any():
        yield "high-bandwidth memory is emulated on ordinary memory"


def summary(results: Tuned) -> dict[str, Any]:
    """Everything that is printed and the ratios that it comes from, as JSON holds it."""
    asked = results.campaign.experiment
    return {
        "thresholds": [_threshold(proposal) for proposal in results.proposals],
        "exports": results.exports,
        "compared": [
            {"variable": variable} | _compared(comparison)
            for variable, cells in results.compared.items()
            for comparison in cells
        ],
        "noise": json_value(results.noise),
        "notes": list(results.notes),
        "machine": results.campaign.header["machine"],
        "question": {
            "ranks": asked.launches.ranks[0],
            "blocks": asked.launches.blocks,
            "measurement": asdict(asked.measurement),
        },
    }


def _threshold(proposal: Proposal) -> dict[str, Any]:
    gain = proposal.gain and {
        key: json_value(value) for key, value in proposal.gain._asdict().items()
    }
    return asdict(proposal) | {"gain": gain}


def _compared(comparison: Compared) -> dict[str, Any]:
    middle = median_ratio(comparison.ratios)
    return asdict(comparison.cell) | {
        "value": comparison.value,
        "ratios": list(comparison.ratios),
        "ratio": middle.value,
        "low": json_value(middle.low),
        "high": json_value(middle.high),
    }


def times(cells: pd.DataFrame) -> list[Times]:
    """The times of each launch of a campaign."""
    launches: list[Times] = []
    for _, launch in cells.groupby(["block", "arm"], sort=True):
        contests: dict[tuple[str, int], dict[int, dict[str, Turns]]] = {}
        for row in rows(launch):
            contest = contests.setdefault((row.operation, row.bytes), {})
            contest.setdefault(row.contest, {})[row.transport] = row.turns
        launches.append({cell: [*by_contender.values()] for cell, by_contender in contests.items()})
    return launches


def paired(above: Turns, below: Turns) -> float:
    """The median over turns of the ratio of two contenders' times."""
    turns = min(len(above), len(below))
    return float(np.exp(np.median(np.log(np.divide(above[:turns], below[:turns])))))


def compared(trial: Trial, launches: Sequence[Times]) -> tuple[Compared, ...]:
    """Each cell of a trial: of a choice, each value over that in force; else way over way."""
    if trial.way == CHOICE:
        pairs = [(value, DIRECT, trial.contender(value)) for value in trial.values]
    else:
        others = trial.contender(trial.without_way), trial.contender(trial.with_way)
        pairs = [(trial.with_way, *others)]
    return tuple(
        Compared(cell, value, _ratios(cell, above, below, launches))
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
            ratios = _ratios(cell, DIRECT, trial.contender(twin), launches)
            strays.append(abs(float(np.median(ratios)) - 1) if ratios else math.nan)
    return float(np.nanquantile(strays, CONFIDENCE)) if strays else math.nan


def _ratios(cell: Cell, above: str, below: str, launches: Sequence[Times]) -> tuple[float, ...]:
    """One of each launch; `below` has turns in one contest, DIRECT in all of them."""
    ratios = []
    for times in launches:
        (turns,) = (contest for contest in times[cell.operation, cell.bytes] if below in contest)
        ratios.append(paired(turns[above], turns[below]))
    return tuple(ratios)


def propose(trial: Trial, comparisons: Sequence[Compared], floor: float) -> Proposal:
    """What a trial's ratios say.

    Args:
        floor: noise(); less than it is not claimed. NaN: there is none.
    """
    if trial.why:
        return _kept(trial, trial.why)
    least = 1 + max(0.0, np.nan_to_num(floor))
    blocks = min((len(comparison.ratios) for comparison in comparisons), default=0)
    if blocks < FEWEST_BLOCKS:
        return _kept(trial, TOO_FEW)
    return (_choose if trial.way == CHOICE else _cross)(trial, comparisons, least)


def _kept(trial: Trial, why: str) -> Proposal:
    return Proposal(trial.variable, trial.unit, trial.now, trial.now, why=why)


def _choose(trial: Trial, comparisons: Sequence[Compared], least: float) -> Proposal:
    """The value that is fastest over all cells, among those that certainly gain."""
    by_value = {
        value: [comparison for comparison in comparisons if comparison.value == value]
        for value in trial.values
    }
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


def _cross(trial: Trial, comparisons: Sequence[Compared], least: float) -> Proposal:
    """The boundary, moved over sizes on either side for as long as none of them loses by it."""
    moves = [_worth_taking(steps, least) for steps in _steps(trial, comparisons)]
    taken = [steps for steps, _ in moves if steps]
    if len(taken) == 1:
        (steps,) = taken
        return _changed(trial, steps[-1].value, chain(*(step.cells for step in steps)))
    alternates = taken or any(gains_again for _, gains_again in moves)
    return _kept(trial, ALTERNATES if alternates else NOTHING)


def _steps(trial: Trial, comparisons: Sequence[Compared]) -> tuple[list[_Step], list[_Step]]:
    """Away from the boundary: the steps that send more sizes the way under test, and fewer."""
    sizes = sorted({comparison.cell.at for comparison in comparisons}, reverse=trial.way == FROM)
    cells = {
        at: [comparison for comparison in comparisons if comparison.cell.at == at] for at in sizes
    }
    more = [_Step(at, cells[at]) for at in sizes if not trial.in_force(at)]
    in_force = [at for at in reversed(sizes) if trial.in_force(at)]
    none = sizes[0] // 2 if trial.way == UP_TO else sizes[0] * 2  # no size goes the way under test
    next_values = [*in_force[1:], none]
    fewer = [
        _Step(value, [comparison.inverse for comparison in cells[at]])
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
    intervals = [(median_ratio(comparison.ratios), comparison.cell) for comparison in gains]
    gain, cell = max(intervals, key=lambda pair: pair[0].low)
    return Proposal(trial.variable, trial.unit, trial.now, value, gain, cell)


def together(comparisons: Sequence[Compared]) -> Interval:
    """The ratio over several cells: in each launch their geometric mean, then over launches."""
    logs = np.log([comparison.ratios for comparison in comparisons])
    return median_ratio(np.exp(logs.mean(axis=0)))


def _verdict(comparisons: Sequence[Compared], least: float) -> int:
    """1: these cells together gain, by more than noise, and none loses; -1: together they lose.

    A loss need not exceed the noise: the more careful mistake is to leave a value as it is.

    Args:
        least: ratio from which a gain is claimed.
    """
    whole = together(comparisons)
    if whole.high < 1:
        return -1
    return int(
        whole.low > least
        and all(median_ratio(comparison.ratios).high >= 1 for comparison in comparisons)
    )
