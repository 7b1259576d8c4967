"""Medians, intervals and verdicts, against samples with a known answer."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from experiments.analysis import statistics
from tests.experiments.analysis.launch_medians import cells


def test_fewer_than_six_samples_have_no_interval() -> None:
    for n in (1, 2, 5):
        interval = statistics.median_interval(np.arange(n, dtype=float))
        assert interval.value == (n - 1) / 2
        assert np.isnan([interval.low, interval.high]).all(), n
    assert np.isnan(statistics.median_interval([]).value)


def test_the_interval_of_paired_ratios_has_order_statistics_for_its_ends() -> None:
    interval = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05, 0.97])
    assert interval == pytest.approx((np.sqrt(1.0 * 1.05), 0.9, 1.3))
    ten = statistics.median_ratio(np.exp(np.arange(10)))
    assert ten == pytest.approx(np.exp([4.5, 1, 8]))
    assert statistics.median_ratio([2.0] * 6) == pytest.approx((2.0, 2.0, 2.0))


def test_a_ratio_and_its_inverse_say_the_same() -> None:
    values = np.random.default_rng(5).lognormal(sigma=0.1, size=8)
    there, back = statistics.median_ratio(values), statistics.median_ratio(1 / values)
    assert (there.value, there.low) == pytest.approx((1 / back.value, 1 / back.high))


def test_five_blocks_are_too_few_for_an_interval_of_a_ratio() -> None:
    interval = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05])
    assert interval.value == pytest.approx(1.05)
    assert np.isnan(interval.low)
    assert np.isnan(statistics.median_ratio([]).value)


def test_holm_matches_the_worked_example_and_is_as_strict_as_each_test_at_least() -> None:
    corrected = statistics.holm([0.01, 0.04, float("nan"), 0.03])
    assert corrected[[0, 1, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(corrected[2])
    p = np.random.default_rng(2).uniform(size=40)
    assert (statistics.holm(p) >= p).all()
    assert (statistics.holm(p) <= 1).all()


def test_the_signed_rank_p_is_that_of_scipy() -> None:
    """With ties scipy looks at all 2**blocks signs, up to 13 blocks."""
    tied = product((*range(2, 10), 14, 15, 40, 60), (1, 0))
    for blocks, decimals in (*tied, *product((*range(2, 12), 14, 15, 40, 60), (9,))):
        logs = np.round(np.random.default_rng(blocks).normal(0.3, 1, blocks), decimals)
        expected = stats.wilcoxon(np.log(np.exp(logs))).pvalue if logs.any() else 1.0
        p = statistics.signed_rank(np.exp(logs))
        assert p == pytest.approx(expected, rel=1e-12), (blocks, decimals)


def test_the_ranks_of_an_interval_are_those_of_scipy() -> None:
    for n in range(1, 400):
        low = int(stats.binom.ppf(0.025, n, 0.5))
        assert statistics._median_ranks(n, 0.95) == ((low - 1, n - low) if low else None)


def test_fewer_than_ten_blocks_are_no_claim_yet() -> None:
    assert statistics.short_of_claim(6) == "Seen in 6 paired blocks; a claim needs 10."
    assert statistics.short_of_claim(10) == ""


def test_simultaneous_intervals_need_six_blocks_and_do_not_depend_on_the_order_of_cells() -> None:
    ratios = np.exp(np.random.default_rng(1).normal(scale=0.01, size=(40, 8)))
    ratios[3, 2:] = np.nan
    intervals = statistics.simultaneous_intervals(ratios)
    assert np.isnan(intervals[3]).all() and np.isfinite(np.delete(intervals, 3, axis=0)).all()
    back = statistics.simultaneous_intervals(ratios[::-1])[::-1]
    assert np.allclose(intervals, back, rtol=1e-12, equal_nan=True)
    inverse = statistics.simultaneous_intervals(1 / ratios)
    assert np.allclose(intervals, 1 / inverse[:, ::-1], rtol=1e-12, equal_nan=True)
    assert np.isnan(statistics.simultaneous_intervals(ratios[:, :5])).all()


def test_a_large_effect_in_one_cell_is_seen_among_many_in_six_blocks() -> None:
    ratios = np.exp(np.random.default_rng(2).normal(scale=0.01, size=(144, 6)))
    ratios[7] *= 1.7
    low, high = statistics.simultaneous_intervals(ratios)[7]
    assert 1.5 < low < 1.7 < high < 1.9


def test_over_launches_gives_the_median_of_launch_medians_for_each_arm() -> None:
    medians = statistics.over_launches(cells({"host": [1.0, 2.0, 3.0, 4.0, 5.0, 60.0]}))
    assert medians["median_s"][0] == 3.5
    assert medians["bus_bytes_per_s"][0] == 1024 / 3.5
    assert (medians["low_s"][0], medians["high_s"][0]) == (1.0, 60.0)
    assert medians["launches"][0] == 6
    assert medians["p95_s"][0] == 7.0
    assert medians["p99_s"][0] == 12.0  # of the launches that have one
    assert medians["skew_s"][0] == 1e-7
    assert medians["n"][0] == 600
    assert medians["group"][0] == 2


def test_the_verdict_follows_from_the_whole_interval() -> None:
    for low, high, floor, expected in (
        (1.05, 1.09, 0.04, "differs"),
        (0.90, 0.95, 0.04, "differs"),
        (1.03, 1.09, 0.04, "bounded"),
        (0.99, 1.01, 0.04, "bounded"),  # no equivalence narrower than the floor
        (0.99, 1.01, 0.02, "equivalent"),
        (0.98, 1.02, 0.00, "equivalent"),
        (0.97, 1.01, 0.01, "bounded"),
        (1.005, 1.01, 0.003, "differs"),  # real, and small
        (1.5, 1.6, np.nan, "bounded"),
        (0.99, 1.01, np.nan, "bounded"),
        (np.nan, np.nan, 0.04, "too few blocks"),
    ):
        assert statistics.verdict(low, high, floor) == expected, (low, high, floor)


def test_a_difference_that_is_one_of_many_needs_its_simultaneous_interval() -> None:
    for joint, expected in (
        ((1.05, 1.2), "differs"),
        ((1.03, 1.2), "bounded"),
        ((np.nan, np.nan), "bounded"),
    ):
        assert statistics.verdict(1.06, 1.09, 0.04, joint) == expected, joint


def test_a_bound_is_no_narrower_than_the_floor() -> None:
    assert statistics.bounds(0.999, 1.002, 0.017) == pytest.approx((0.983, 1.017))
    assert statistics.bounds(0.96, 1.01, 0.017) == pytest.approx((0.96, 1.017))
    assert statistics.bounds(0.99, 1.01, np.nan) == (0.99, 1.01)


def test_the_unpaired_ratio_is_of_the_medians_and_needs_six_on_each_side() -> None:
    above = [2.0, 2.2, 1.8, 2.1, 1.9, 50.0]
    interval = statistics.unpaired_ratio(above, [1.0] * 6)
    assert interval.value == pytest.approx(2.05)
    assert interval.low <= interval.value <= interval.high
    assert interval == statistics.unpaired_ratio(above, [1.0] * 6)
    assert np.isnan(statistics.unpaired_ratio(above, [1.0] * 5).low)
    assert statistics.unpaired_ratio([3.0] * 6, [2.0] * 6) == (1.5, 1.5, 1.5)
