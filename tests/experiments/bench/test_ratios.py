"""Pairs are taken within a turn; what disturbs one turn disturbs both of a pair."""

import numpy as np
import pytest

from experiments.bench.trials import CHOICE, UP_TO, Cell, Trial
from experiments.bench.tune_ratios import Contest, compared, noise, paired, read

CELLS = (Cell("bcast", 512, 512), Cell("bcast", 2048, 2048))
CROSSOVER = Trial("HBMCOMM_EAGER_BYTES", "bytes", 1024, UP_TO, (0, 32768), CELLS)
PUSH = Trial("HBMCOMM_PUSH_RANKS", "ranks", 8, CHOICE, (1,), CELLS)


def launch(now: float, low: float, high: float) -> dict[Contest, dict[str, np.ndarray]]:
    names = [*CROSSOVER.contenders, *PUSH.contenders[1:]]
    times = dict(zip(names, map(np.atleast_1d, (now, low, high, high)), strict=True))
    return {(False, cell.operation, cell.bytes): times for cell in CELLS}


def test_a_drift_within_a_launch_does_not_show() -> None:
    drift = np.array([1.0, 3.0, 10.0, 2.0])
    assert paired(2 * drift, drift) == pytest.approx(2.0)
    assert paired(2 * drift, drift[:3]) == pytest.approx(2.0), "one was done a turn before"


def test_the_slowest_rank_counts_by_the_median_of_each_turn_and_warm_up_does_not() -> None:
    turns = [[1.0, 2.0], [9.0, 1.0], [3.0, 1.0], [5.0, 4.0], [4.0, 5.0], [6.0, 2.0]]
    seconds = np.array([[9.0, 9.0], *turns])
    cell = {"operation": "bcast", "bytes": 512, "buffers": "numpy", "transport": "direct"}
    cell |= {"samples": "a", "warmup": 1, "group": 1, "turn": 3}
    times = read({"cells": [cell]}, {"a": seconds})[True, "bcast", 512]
    assert {name: each.tolist() for name, each in times.items()} == {"direct": [3.0, 5.0]}


def test_above_one_the_way_under_test_is_faster() -> None:
    found = compared(CROSSOVER, [launch(1.0, low=3.0, high=2.0), launch(1.0, low=5.0, high=2.0)])
    assert [each.cell for each in found] == list(CELLS)
    assert all(each.ratios == pytest.approx((1.5, 2.5)) for each in found)
    assert all(each.value == 32768 for each in found)


def test_above_one_a_value_is_faster_than_the_one_in_force() -> None:
    found = compared(PUSH, [launch(3.0, low=9.0, high=2.0)])
    assert [(each.value, *each.ratios) for each in found] == [(1, pytest.approx(1.5))] * 2


def test_noise_is_how_far_the_same_way_strays_from_itself() -> None:
    # at 512 the value in force goes the way of 32768, at 2048 that of 0
    assert noise([CROSSOVER], [launch(1.0, low=1.0, high=1.0)]) == 0
    strays = noise([CROSSOVER], [launch(1.1, low=1.1, high=1.0)])
    assert 0.09 < strays < 0.1
    assert np.isnan(noise([PUSH], [launch(1.0, 1.0, 1.0)]))
