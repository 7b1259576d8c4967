"""How often the statistics are right, over thousands of campaigns with a known answer.

The figures are in the docstrings of analysis/statistics.py. Seeds are fixed; tolerances are three
 standard errors of a share, rounded up, beside the share found with many more samples.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from experiments.analysis import ratios, statistics
from experiments.analysis.statistics import Verdict
from tests.experiments.analysis import launch_medians

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

DRAWS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) - np.log(2),
}
"""Logarithms of ratios with a median of 0."""


def intervals(rows: Array) -> tuple[Array, Array]:
    """The ends of median_ratio of each row at once."""
    ranks = statistics._median_ranks(rows.shape[1], statistics.CONFIDENCE)
    assert ranks is not None
    ordered = np.sort(rows, axis=1)
    return ordered[:, ranks[0]], ordered[:, ranks[1]]


def test_the_rows_at_once_are_what_one_at_a_time_gives() -> None:
    rows = np.exp(0.03 * DRAWS["normal"](np.random.default_rng(1), (5, 10)))
    low, high = intervals(rows)
    for row, *ends in zip(rows, low, high, strict=True):
        interval = statistics.median_ratio(row)
        assert [interval.low, interval.high] == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize(
    ("launches", "draw"),
    [(6, "normal"), (6, "heavy-tailed"), (6, "skewed"), (10, "normal")],
)
def test_the_interval_of_an_unpaired_ratio_covers_95_times_of_100(launches: int, draw: str) -> None:
    rng = np.random.default_rng(12)
    above, below = (np.exp(0.03 * DRAWS[draw](rng, (400, launches))) for _ in range(2))
    estimates = [statistics.unpaired_ratio(*sides) for sides in zip(above, below, strict=True)]
    covered = np.mean([estimate.low <= 1 <= estimate.high for estimate in estimates])
    assert 0.91 <= covered <= 0.99


@pytest.mark.parametrize(
    ("n", "exact", "draw"),
    [
        (6, 0.969, "skewed"),
        (8, 0.992, "heavy-tailed"),
        (10, 0.979, "normal"),
        (100, 0.954, "skewed"),
    ],
)
def test_the_interval_of_order_statistics_covers_as_often_as_the_binomial_says(
    n: int, exact: float, draw: str
) -> None:
    """Whatever is drawn: only its order counts."""
    rows = DRAWS[draw](np.random.default_rng(3), (1500, n))
    estimates = [statistics.median_interval(row) for row in rows]
    covered = np.mean([estimate.low <= 0 <= estimate.high for estimate in estimates])
    assert covered == pytest.approx(exact, abs=0.017)


def holm_rejects(logs: Array) -> NDArray[np.bool_]:
    """Which cells the test rejects; logs of shape (campaigns, cells of a series, blocks)."""
    p = stats.wilcoxon(logs, axis=-1).pvalue
    return np.array([statistics.holm(series) <= 0.05 for series in p])


def test_the_tests_at_once_are_what_one_at_a_time_gives() -> None:
    logs = np.random.default_rng(4).normal(size=(20, 10))
    at_once = stats.wilcoxon(logs, axis=-1).pvalue
    assert at_once == pytest.approx([statistics.signed_rank(np.exp(row)) for row in logs])


@pytest.mark.parametrize(("blocks", "sizes"), [(6, 1), (6, 8), (10, 1), (10, 8), (10, 24)])
def test_a_series_without_effect_is_rejected_anywhere_5_times_of_100_at_most(
    blocks: int, sizes: int
) -> None:
    logs = np.random.default_rng(5).standard_t(4, size=(1500, sizes, blocks))
    assert holm_rejects(logs).any(axis=1).mean() <= 0.05 + 0.017


@pytest.mark.parametrize(
    ("blocks", "sizes", "effect", "power"),
    [
        (10, 1, 1.0, 0.78),  # effect in standard deviations of a block's log ratio
        (10, 8, 1.0, 0.44),
        (10, 8, 2.0, 1.00),
        (6, 1, 2.0, 0.86),
        (6, 8, 3.0, 0.00),  # 8 times the least p of 6 blocks is 0.25
        (10, 45, 3.0, 0.00),  # a whole figure as one family: no effect could ever be seen
    ],
)
def test_the_power_of_the_test_is_known(
    blocks: int, sizes: int, effect: float, power: float
) -> None:
    logs = effect + np.random.default_rng(6).normal(size=(600, sizes, blocks))
    assert holm_rejects(logs).mean() == pytest.approx(power, abs=0.05)


@pytest.mark.parametrize(
    ("cost", "noise", "least", "most"),
    [(1.02, 0.01, 0, 0.05), (1.03, 0.01, 0, 0.005), (1.0, 0.005, 0.99, 1)],
)
@pytest.mark.parametrize("blocks", [6, 10])
def test_no_cost_is_called_none_and_one_at_the_edge_3_times_of_100(
    blocks: int, cost: float, noise: float, least: float, most: float
) -> None:
    rng = np.random.default_rng(8)
    low, high = intervals(cost * np.exp(noise * rng.normal(size=(1500, blocks))))
    called = [
        statistics.verdict(*ends, 0.01) == Verdict.EQUIVALENT
        for ends in zip(low, high, strict=True)
    ]
    assert least <= np.mean(called) <= most


def test_the_ratio_of_a_group_is_narrower_than_those_of_its_cells_and_right() -> None:
    rng = np.random.default_rng(11)
    host, docker = np.exp(rng.normal(scale=0.03, size=(2, 8, 10)))
    frame = pd.concat(
        launch_medians.cells({"host": [*host[n]], "docker": [*1.10 * docker[n]]}).assign(bytes=2**n)
        for n in range(8)
    )
    cells = ratios.paired_ratio(frame, "arm", "docker", "host")
    (group,) = ratios.group_ratio(cells, ["operation", "transport"]).itertuples(index=False)
    assert (group.operation, group.cells, group.blocks) == ("bcast", 8, 10)
    assert group.low <= 1.10 <= group.high
    assert group.high - group.low < (cells["high"] - cells["low"]).median() / 1.5
