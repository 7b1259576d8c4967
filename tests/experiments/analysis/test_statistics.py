"""Medians, intervals and verdicts, against samples with a known answer."""

import numpy as np
import pytest

from experiments.analysis import statistics
from tests.experiments.analysis.launch_medians import cells


@pytest.mark.parametrize("n", [1, 2, 5])
def test_fewer_than_six_samples_have_no_interval(n: int) -> None:
    found = statistics.median_interval(np.arange(n, dtype=float))
    assert found.value == (n - 1) / 2
    assert np.isnan([found.low, found.high, statistics.median_interval([]).value]).all()


def test_the_interval_of_paired_ratios_has_order_statistics_for_its_ends() -> None:
    found = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05, 0.97])
    assert found == pytest.approx((np.sqrt(1.0 * 1.05), 0.9, 1.3))
    ten = statistics.median_ratio(np.exp(np.arange(10)))
    assert ten == pytest.approx(np.exp([4.5, 1, 8]))
    assert statistics.median_ratio([2.0] * 6) == pytest.approx((2.0, 2.0, 2.0))


def test_a_ratio_and_its_inverse_say_the_same() -> None:
    values = np.random.default_rng(5).lognormal(sigma=0.1, size=8)
    there, back = statistics.median_ratio(values), statistics.median_ratio(1 / values)
    assert (there.value, there.low) == pytest.approx((1 / back.value, 1 / back.high))


def test_five_blocks_are_too_few_for_an_interval_of_a_ratio() -> None:
    found = statistics.median_ratio([1.0, 1.1, 0.9, 1.3, 1.05])
    assert found.value == pytest.approx(1.05)
    assert np.isnan(found.low)
    assert np.isnan(statistics.median_ratio([]).value)


def test_holm_matches_the_worked_example_and_is_as_strict_as_each_test_at_least() -> None:
    found = statistics.holm([0.01, 0.04, float("nan"), 0.03])
    assert found[[0, 1, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(found[2])
    p = np.random.default_rng(2).uniform(size=40)
    assert (statistics.holm(p) >= p).all()
    assert (statistics.holm(p) <= 1).all()


def test_six_blocks_reach_the_exact_signed_rank_p_that_is_promised() -> None:
    assert statistics.signed_rank(np.array([1.1, 1.2, 1.3, 1.15, 1.25, 1.35])) == 0.03125


@pytest.mark.parametrize(("cells", "blocks"), [(1, 10), (25, 10), (26, 11), (102, 12), (180, 13)])
def test_a_claim_on_the_largest_of_many_cells_needs_more_blocks(cells: int, blocks: int) -> None:
    assert statistics.claim_blocks(cells) == blocks


@pytest.mark.parametrize("cells", [25, 102])
def test_so_many_ranges_from_block_to_block_hold_every_median_at_once(cells: int) -> None:
    rng = np.random.default_rng(5)
    draws = rng.standard_t(2, (2000, cells, statistics.claim_blocks(cells)))
    held = (draws.min(axis=2) <= 0) & (draws.max(axis=2) >= 0)
    assert held.all(axis=1).mean() > 0.94


def test_over_launches_gives_the_median_of_launch_medians_for_each_arm() -> None:
    found = statistics.over_launches(cells({"host": [1.0, 2.0, 3.0, 4.0, 5.0, 60.0]}))
    assert found["median_s"][0] == 3.5
    assert found["bus_bytes_per_s"][0] == 1024 / 3.5
    assert (found["low_s"][0], found["high_s"][0]) == (1.0, 60.0)
    assert found["launches"][0] == 6
    assert found["p95_s"][0] == 7.0
    assert found["p99_s"][0] == 12.0  # of the launches that have one
    assert found["skew_s"][0] == 1e-7
    assert found["n"][0] == 600
    assert found["group"][0] == 2


@pytest.mark.parametrize(
    ("low", "high", "floor", "expected"),
    [
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
    ],
)
def test_the_verdict_follows_from_the_whole_interval(
    low: float, high: float, floor: float, expected: str
) -> None:
    assert statistics.verdict(low, high, floor) == expected


def test_a_bound_is_no_narrower_than_the_floor() -> None:
    assert statistics.bounds(0.999, 1.002, 0.017) == pytest.approx((0.983, 1.017))
    assert statistics.bounds(0.96, 1.01, 0.017) == pytest.approx((0.96, 1.017))
    assert statistics.bounds(0.99, 1.01, np.nan) == (0.99, 1.01)


def test_the_unpaired_ratio_is_of_the_medians_and_needs_six_on_each_side() -> None:
    above = [2.0, 2.2, 1.8, 2.1, 1.9, 50.0]
    found = statistics.unpaired_ratio(above, [1.0] * 6)
    assert found.value == pytest.approx(2.05)
    assert found.low <= found.value <= found.high
    assert found == statistics.unpaired_ratio(above, [1.0] * 6)
    assert np.isnan(statistics.unpaired_ratio(above, [1.0] * 5).low)
    assert statistics.unpaired_ratio([3.0] * 6, [2.0] * 6) == (1.5, 1.5, 1.5)
