"""Turns give ratios, and ratios the threshold that they speak for; or none where they do not."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from experiments.analysis.thresholds import (
    ALTERNATES,
    NOTHING,
    TOO_FEW,
    Compared,
    Proposal,
    Times,
    compared,
    noise,
    paired,
    propose,
)
from experiments.model.trials import CHOICE, FROM, NEVER, UP_TO, Cell, Trial

FASTER, EQUAL, SLOWER = 1.5, 1.0, 0.6
SIZES = (256, 512, 1024, 2048, 4096, 8192)


def spread(ratio: float, blocks: int = 6) -> tuple[float, ...]:
    """Launches that scatter by 1 % around a ratio."""
    return tuple(ratio * (1 + 0.01 * offset) for offset in np.linspace(-1, 1, blocks))


def crossover(way: str, now: int, operations: tuple[str, ...] = ("bcast",)) -> Trial:
    cells = tuple(Cell(name, at, at) for name in operations for at in SIZES)
    return Trial("HBMCOMM_X_BYTES", "bytes", now, now, way, (0, NEVER), cells)


def decided(
    trial: Trial, ratios: Mapping[Any, float], floor: float = 0.03, blocks: int = 6
) -> Proposal:
    """The proposal where the way under test is so much faster, else equally fast.

    Args:
        ratios: by size, or by operation and size.
    """

    def ratio(cell: Cell) -> float:
        return ratios.get((cell.operation, cell.at), ratios.get(cell.at, EQUAL))

    comparisons = [
        Compared(cell, trial.with_way, spread(ratio(cell), blocks)) for cell in trial.cells
    ]
    return propose(trial, comparisons, floor)


def test_up_to_or_from_which_size_or_why_it_stays() -> None:
    cases: list[tuple[str, dict[int, float], int | str]] = [
        (UP_TO, {}, NOTHING),
        (UP_TO, {256: FASTER, 512: FASTER, 1024: FASTER, 2048: SLOWER, 4096: SLOWER}, NOTHING),
        (UP_TO, {1024: FASTER, 2048: SLOWER}, NOTHING),
        (UP_TO, {2048: FASTER}, 2048),
        (UP_TO, {2048: FASTER, 4096: FASTER, 8192: SLOWER}, 4096),
        (UP_TO, {4096: FASTER}, 4096),
        (UP_TO, {2048: SLOWER, 4096: FASTER}, ALTERNATES),
        (UP_TO, {2048: FASTER, 4096: SLOWER, 8192: FASTER}, 2048),
        (UP_TO, {1024: SLOWER}, 512),
        (UP_TO, {1024: SLOWER, 2048: FASTER}, ALTERNATES),
        (UP_TO, {512: SLOWER}, 256),
        (UP_TO, {512: SLOWER, 1024: FASTER}, ALTERNATES),
        (UP_TO, {256: SLOWER, 512: SLOWER, 1024: SLOWER}, 128),
        (FROM, {}, NOTHING),
        (FROM, {256: SLOWER, 512: SLOWER, 1024: FASTER, 8192: FASTER}, NOTHING),
        (FROM, {512: FASTER}, 512),
        (FROM, {256: FASTER}, 256),
        (FROM, {256: FASTER, 512: SLOWER}, ALTERNATES),
        (FROM, {1024: SLOWER}, 2048),
        (FROM, {2048: SLOWER}, 4096),
        (FROM, {1024: FASTER, 2048: SLOWER}, ALTERNATES),
        (FROM, {1024: SLOWER, 2048: SLOWER, 4096: SLOWER, 8192: SLOWER}, 16384),
    ]
    for way, ratios, outcome in cases:
        proposal = decided(crossover(way, 1024), ratios)
        stays = isinstance(outcome, str)
        expected = (1024, outcome) if stays else (outcome, "")
        assert (proposal.proposed, proposal.why) == expected, (way, ratios)
        assert proposal.changes != stays, (way, ratios)


def test_a_loss_within_the_noise_stops_it_all_the_same() -> None:
    for at_1024, proposed in {1.0: 4096, 1.1: 1024, 0.9: 4096}.items():
        ratios = {1024: at_1024, 2048: SLOWER}
        assert decided(crossover(FROM, 1024), ratios, floor=0.2).proposed == proposed, at_1024


def test_a_value_in_force_between_two_sizes_is_moved_too() -> None:
    assert decided(crossover(UP_TO, 3000), {4096: FASTER}).proposed == 4096
    assert decided(crossover(UP_TO, 3000), {2048: SLOWER}).proposed == 1024
    assert decided(crossover(FROM, 3000), {2048: FASTER}).proposed == 2048


def test_the_gain_is_the_largest_that_is_certain_and_says_where() -> None:
    up = decided(crossover(UP_TO, 1024), {2048: 1.2, 4096: 1.6})
    assert up.cell == Cell("bcast", 4096, 4096)
    assert up.gain is not None and up.gain.low > 1.5 and up.gain.value == pytest.approx(1.6, 0.02)
    down = decided(crossover(UP_TO, 1024), {1024: 0.5})
    assert down.cell == Cell("bcast", 1024, 1024)
    assert down.gain is not None and down.gain.value == pytest.approx(2.0, 0.02)


def test_what_noise_alone_could_do_is_not_claimed() -> None:
    for floor, proposed in ((0.03, 2048), (0.2, 1024), (math.nan, 2048)):
        assert decided(crossover(UP_TO, 1024), {2048: 1.1}, floor).proposed == proposed, floor


def test_an_interval_that_holds_one_keeps_the_value() -> None:
    trial = crossover(UP_TO, 1024)
    wild = (0.7, 0.8, 1.4, 1.5, 1.6, 1.7, 0.9)
    comparisons = [
        Compared(cell, trial.with_way, wild if cell.at == 2048 else spread(EQUAL, 7))
        for cell in trial.cells
    ]
    assert np.median(wild) == 1.4
    assert propose(trial, comparisons, 0.0).proposed == 1024


def test_too_few_launches_say_nothing() -> None:
    for blocks in (0, 1, 5):
        proposal = decided(crossover(UP_TO, 1024), dict.fromkeys(SIZES, FASTER), blocks=blocks)
        assert (proposal.proposed, proposal.why) == (1024, TOO_FEW), blocks


def test_operations_of_a_size_decide_together_and_none_may_lose() -> None:
    trial = crossover(UP_TO, 1024, ("bcast", "gather"))

    def found(bcast: float, gather: float) -> Proposal:
        return decided(trial, {("bcast", 2048): bcast, ("gather", 2048): gather})

    gains = found(FASTER, 1.01)
    assert gains.proposed == 2048 and gains.cell == Cell("bcast", 2048, 2048)
    assert found(2.0, 0.8).proposed == 1024, "faster together, but Gather certainly loses"


def choice(ratios: Mapping[int, tuple[float, float]]) -> Proposal:
    """Values with their ratios over the value in force, 256, in two cells."""
    cells = (Cell("bcast", 2**20, 2**20), Cell("bcast", 2**22, 2**22))
    trial = Trial("HBMCOMM_PIECE_BYTES", "bytes", 256, 256, CHOICE, tuple(ratios), cells, True)
    comparisons = [
        Compared(cell, value, spread(ratio))
        for value, by_cell in ratios.items()
        for cell, ratio in zip(cells, by_cell, strict=True)
    ]
    return propose(trial, comparisons, 0.03)


def test_the_best_value_is_chosen_among_those_that_certainly_gain() -> None:
    proposal = choice({64: (0.9, 0.9), 128: (1.2, 1.1), 512: (1.2, 1.4), 1024: (2.0, 0.8)})
    assert proposal.proposed == 512
    assert proposal.cell == Cell("bcast", 2**22, 2**22)


def test_without_a_certain_gain_the_value_stays() -> None:
    proposal = choice({64: (1.01, 1.0), 128: (0.9, 1.2)})
    assert (proposal.proposed, proposal.why, proposal.gain) == (256, NOTHING, None)


CELLS = (Cell("bcast", 512, 512), Cell("bcast", 2048, 2048))
CROSSOVER = Trial("HBMCOMM_EAGER_BYTES", "bytes", 1024, 2048, UP_TO, (0, 32768), CELLS)
PUSH = Trial("HBMCOMM_PUSH_RANKS", "ranks", 8, 8, CHOICE, (1,), CELLS)


def launch(now: float, low: float, high: float) -> Times:
    """Times of one turn: of the value in force, and of the others in contests of their own."""
    contests = [dict(zip(CROSSOVER.contenders, ((now,), (low,), (high,)), strict=True))]
    contests.append(dict(zip(PUSH.contenders, ((now,), (high,)), strict=True)))
    return {(cell.operation, cell.bytes): contests for cell in CELLS}


def test_a_drift_within_a_launch_does_not_show() -> None:
    drift = np.array([1.0, 3.0, 10.0, 2.0])
    assert paired(2 * drift, drift) == pytest.approx(2.0)
    assert paired(2 * drift, drift[:3]) == pytest.approx(2.0), "one was done a turn before"


def test_above_one_the_way_under_test_is_faster() -> None:
    comparisons = compared(
        CROSSOVER, [launch(1.0, low=3.0, high=2.0), launch(1.0, low=5.0, high=2.0)]
    )
    assert [comparison.cell for comparison in comparisons] == list(CELLS)
    assert all(comparison.ratios == pytest.approx((1.5, 2.5)) for comparison in comparisons)
    assert all(comparison.value == 32768 for comparison in comparisons)


def test_above_one_a_value_is_faster_than_the_one_in_force() -> None:
    comparisons = compared(PUSH, [launch(3.0, low=9.0, high=2.0)])
    assert [(comparison.value, *comparison.ratios) for comparison in comparisons] == [
        (1, pytest.approx(1.5))
    ] * 2


def test_noise_is_how_far_the_same_way_strays_from_itself() -> None:
    # at 512 the value in force goes the way of 32768, at 2048 that of 0
    assert noise([CROSSOVER], [launch(1.0, low=1.0, high=1.0)]) == 0
    strays = noise([CROSSOVER], [launch(1.1, low=1.1, high=1.0)])
    assert 0.09 < strays < 0.1
    assert np.isnan(noise([PUSH], [launch(1.0, 1.0, 1.0)]))
