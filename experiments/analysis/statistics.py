"""Medians, their intervals and what they let one say: METHOD of the project, as pure functions.

Knows DataFrames and numbers only; store.py knows how they are stored.
Sources: Hoefler and Belli, SC'15, doi:10.1145/2807591.2807644 (medians, nonparametric intervals);
Efron, JASA 82 (1987) 171 (BCa); Wilcoxon, Biometrics 1 (1945) 80; Holm, Scand. J. Stat. 6 (1979)
65 (correction); Schuirmann, J. Pharmacokin. Biopharm. 15 (1987) 657 (equivalence).
"""

import math
import warnings
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.model.lower_bound import bus_bytes
from experiments.model.quantities import counted

CONFIDENCE = 0.95
FEWEST_BLOCKS = 6  # fewer have no 95 % interval of a median
CLAIM_BLOCKS = 10  # fewer paired blocks than this and no claim below p 0.002 is possible
EQUIVALENCE = 0.02  # a cost or a gain up to this share is as good as none
RESAMPLES = 2000
SEED = 20201019  # fixed, so that an interval is the same each time it is computed

FACTORS = (
    "environment",
    "profile",
    "layout",
    "mpi",
    "setting",
    "ranks",
    "binding",
    "locality",
    "operation",
    "transport",
    "form",
    "kind",
    "emulated",
    "dtype",
    "bytes",
    "cadence",
    "cache",
)
"""What names a cell; `arm` names the launch within a block and `block` the replicate."""

OWN = ("p95_s", "p99_s", "bound_s", "skew_s")
"""Seconds that a launch has of each cell, beside the median."""

CONTAINER = ("environment", "profile", "layout")
"""The factors that an arm's name determines."""


class Interval(NamedTuple):
    """A point estimate with the ends of its confidence interval, in the unit of the samples."""

    value: float
    low: float
    high: float


class Verdict(StrEnum):
    """What the interval of a ratio of times lets one say."""

    DIFFERS = "differs"  # the whole interval is beyond the noise floor
    EQUIVALENT = "equivalent"  # interval and noise floor are within EQUIVALENCE of 1
    BOUNDED = "bounded"  # neither; bounds() says how large the effect can be
    TOO_FEW = "too few blocks"  # there is no interval


def verdict(low: float, high: float, floor: float) -> Verdict:
    """What the 95 % interval of a ratio lets one say.

    An interval that is both beyond a very low floor and within EQUIVALENCE differs: the effect is
    real, and the interval says how small it is.

    Args:
        low, high: ends of the interval; NaN where there are too few blocks for one.
        floor: of ratios.Floors, 0.03 for 3 %; NaN (no A/A pair) lets nothing differ and nothing be
            equivalent.
    """
    if math.isnan(low) or math.isnan(high):
        return Verdict.TOO_FEW
    if low > 1 + floor or high < 1 - floor:  # False where the floor is NaN
        return Verdict.DIFFERS
    if floor <= EQUIVALENCE and low >= 1 - EQUIVALENCE and high <= 1 + EQUIVALENCE:
        return Verdict.EQUIVALENT
    return Verdict.BOUNDED


def bounds(low: float, high: float, floor: float) -> tuple[float, float]:
    """The least and the largest ratio that an interval and the noise floor together allow.

    No bound is narrower than the floor, since what is smaller shows between equals too.
    """
    if math.isnan(floor):
        return low, high
    return min(low, 1 - floor), max(high, 1 + floor)


@lru_cache(maxsize=4096)
def _median_ranks(n: int, confidence: float) -> tuple[int, int] | None:
    """0-based order statistics that enclose the median, None when n is too small (below 6)."""
    from scipy import stats  # takes half a second that commands without statistics need not pay

    low = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))
    return (low - 1, n - low) if low >= 1 else None


def median_interval(samples: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Median and its distribution-free interval from order statistics.

    Args:
        samples: n seconds, any order.

    Returns:
        The ends are NaN below 6 samples: the whole range then covers less than 95 %.
    """
    ordered = np.sort(np.asarray(samples, dtype=float))
    if ordered.size == 0:
        return Interval(np.nan, np.nan, np.nan)
    ranks = _median_ranks(ordered.size, CONFIDENCE)
    low, high = ordered[list(ranks)].tolist() if ranks else (np.nan, np.nan)
    return Interval(float(np.median(ordered)), low, high)


def median_ratio(ratios: Sequence[float] | NDArray[np.float64]) -> Interval:
    """Median of paired ratios, on the scale of logarithms, and its exact interval.

    The interval has order statistics for its ends, as median_interval()'s: it covers the median of
    any distribution at least 95 times of 100 (97 with 6 ratios, 99 with 8, 98 with 10). A bootstrap
    of so few values is narrower since it covers too little: BCa 91 to 94 times of 100 with 6 to 10
    (simulated for normal, heavy-tailed and skewed values). On logarithms the ratio of A over B is
    the inverse of that of B over A.

    Below 6 values there is no interval (NaN): the whole range covers less than 95 %.
    """
    return Interval(*np.exp(median_interval(np.log(np.asarray(ratios, dtype=float)))).tolist())


def unpaired_ratio(
    numerator: Sequence[float] | NDArray[np.float64],
    denominator: Sequence[float] | NDArray[np.float64],
) -> Interval:
    """Ratio of two medians of samples that share no block, with its BCa bootstrap interval.

    Each side is resampled by itself. It covers 94 to 96 % of the time with 6 to 20 samples a side
    (simulated). No interval (NaN) where a side has fewer than FEWEST_BLOCKS; of degenerate samples,
    which have no BCa, the percentile interval.
    """
    above, below = (np.asarray(side, dtype=float) for side in (numerator, denominator))
    ratio = float(_ratio_of_medians(above, below))
    if min(above.size, below.size) < FEWEST_BLOCKS:
        return Interval(ratio, np.nan, np.nan)
    if np.ptp(above) == np.ptp(below) == 0:
        return Interval(ratio, ratio, ratio)
    from scipy import stats  # late, as in _median_ranks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate BCa is answered by the percentile method
        for method in ("BCa", "percentile"):
            found = stats.bootstrap(
                (above, below),
                _ratio_of_medians,
                n_resamples=RESAMPLES,
                confidence_level=CONFIDENCE,
                method=method,
                rng=np.random.default_rng(SEED),
            ).confidence_interval
            if np.isfinite(found.low) and np.isfinite(found.high):
                break
    return Interval(ratio, float(found.low), float(found.high))


def _ratio_of_medians(above: Any, below: Any, axis: int = -1) -> Any:
    return np.median(above, axis=axis) / np.median(below, axis=axis)


def holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Holm's step-down correction; NaN (nothing to test) stays NaN and does not count."""
    values = np.asarray(p, dtype=float)
    corrected = np.full(values.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    steps = values[order] * (order.size - np.arange(order.size))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps)) if order.size else steps
    return corrected


def signed_rank(ratios: NDArray[np.float64]) -> float:
    """Two-sided Wilcoxon signed-rank p of log(ratio) against no effect; NaN below 2 blocks."""
    logs = np.log(ratios)
    if logs.size < 2:
        return float("nan")
    if not logs.any():
        return 1.0
    from scipy import stats  # late, as in _median_ranks

    return _p_of_ranks(tuple(sorted(stats.rankdata(np.abs(logs)) * np.sign(logs))))


@lru_cache(maxsize=2**16)
def _p_of_ranks(signed: tuple[float, ...]) -> float:
    """The test depends on signed ranks alone, and few of them occur: 64 with 6 blocks."""
    from scipy import stats  # late, as in _median_ranks

    return float(stats.wilcoxon(signed).pvalue)


def least_p(blocks: int) -> float:
    """The smallest p that signed_rank can give for so many paired blocks."""
    return min(1.0, 2 * 0.5**blocks)


def claim_blocks(cells: int) -> int:
    """Paired blocks that a claim on the largest of so many cells needs.

    The range from block to block misses a cell's median in a share least_p() of campaigns, and
    that of any of the cells in at most the sum (Bonferroni): from so many blocks on, all ranges
    hold at once with CONFIDENCE.
    """
    blocks = CLAIM_BLOCKS
    while cells * least_p(blocks) > 1 - CONFIDENCE:
        blocks += 1
    return blocks


def short_of_claim(blocks: int, cells: int) -> str:
    """What keeps an effect in the largest of so many cells from being a claim; "" for nothing."""
    needed = claim_blocks(cells)
    if blocks >= needed:
        return ""
    which = f" on the largest of {cells} cells" if needed > claim_blocks(1) else ""
    return f"Seen in {counted(blocks, 'paired block')}; a claim{which} needs {needed}."


def over_launches(cells: pd.DataFrame) -> pd.DataFrame:
    """Median of the launch medians for each cell of each arm.

    Returns:
        One row per arm and FACTORS with median_s, low_s, high_s; p95_s, p99_s, bound_s and skew_s,
        the medians of the launches' own (seconds; NaN where no launch has one); bus_bytes_per_s,
        the bus bandwidth at the median; group, the most operations that one timed interval holds;
        n, iterations in all launches; launches.
    """
    keys = ["arm", *FACTORS]
    groups = cells.groupby(keys, sort=True, observed=True)
    found = groups.agg(
        median_s=("median_s", list),
        **{key: (key, "median") for key in OWN},
        group=("group", "max"),
        n=("n", "sum"),
        launches=("n", "size"),
    ).reset_index()
    middles = [median_interval(each) for each in found["median_s"]]
    times = ["median_s", "low_s", "high_s"]
    found[times] = pd.DataFrame(middles, columns=times, dtype=float)
    factors = zip(found["operation"], found["ranks"], strict=True)
    moved = [bus_bytes(operation, ranks) for operation, ranks in factors] * found["bytes"]
    found["bus_bytes_per_s"] = moved / found["median_s"]
    return found[[*keys, *times, *OWN, "bus_bytes_per_s", "group", "n", "launches"]]
