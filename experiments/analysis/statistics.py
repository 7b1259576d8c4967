"""Medians, their intervals and what they let one say: METHOD of the project, as pure functions.

Knows DataFrames and numbers only; store.py knows how they are stored.
Sources: Hoefler and Belli, SC'15, doi:10.1145/2807591.2807644 (medians, nonparametric intervals);
Efron, JASA 82 (1987) 171 (BCa); Wilcoxon, Biometrics 1 (1945) 80; Holm, Scand. J. Stat. 6 (1979)
65 (correction); Schuirmann, J. Pharmacokin. Biopharm. 15 (1987) 657 (equivalence); Westfall and
Young, Resampling-Based Multiple Testing, 1993 (the largest of many); Wilks, Ann. Math. Stat. 12
(1941) 91 (tolerance bounds).
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
TOLERATED = 0.95  # of null cells, that a noise floor holds where it has cells enough
EQUIVALENCE = 0.02  # a cost or a gain up to this share is as good as none
RESAMPLES = 2000
FLIPS = 2**12  # ways to exchange the sides of blocks that are looked at; all of them to 13 blocks
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

    DIFFERS = "differs"  # the whole simultaneous interval is beyond the noise floor
    EQUIVALENT = "equivalent"  # interval and noise floor are within EQUIVALENCE of 1
    BOUNDED = "bounded"  # neither; bounds() says how large the effect can be
    TOO_FEW = "too few blocks"  # there is no interval


def verdict(low: float, high: float, floor: float, joint: Sequence[float] | None = None) -> Verdict:
    """What the 95 % interval of a ratio lets one say.

    An interval that is both beyond a very low floor and within EQUIVALENCE differs: the effect is
    real, and the interval says how small it is.

    Args:
        low, high: ends of the interval; NaN where there are too few blocks for one.
        floor: of ratios.Floors, 0.03 for 3 %; NaN (no A/A pair, or too few of its cells) lets
            nothing differ and nothing be equivalent.
        joint: ends of the interval of simultaneous_intervals(), where the ratio is one of several:
            a difference is chosen among them. To be within EQUIVALENCE needs no correction: that
            all cells are, is false with that probability for the widest alone.
    """
    if math.isnan(low) or math.isnan(high):
        return Verdict.TOO_FEW
    least, most = (low, high) if joint is None else joint
    if least > 1 + floor or most < 1 - floor:  # False where the floor or an end is NaN
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
    from scipy import special  # late: commands without statistics need not pay for it

    shares = special.bdtr(np.arange(n + 1), n, 0.5)
    low = int(np.searchsorted(shares, (1 - confidence) / 2))
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
    from scipy import stats  # takes a second, and a comparison alone needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate BCa is answered by the percentile method
        for method in ("BCa", "percentile"):
            interval = stats.bootstrap(
                (above, below),
                _ratio_of_medians,
                n_resamples=RESAMPLES,
                confidence_level=CONFIDENCE,
                method=method,
                rng=np.random.default_rng(SEED),
            ).confidence_interval
            if np.isfinite(interval.low) and np.isfinite(interval.high):
                break
    return Interval(ratio, float(interval.low), float(interval.high))


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
    """Two-sided Wilcoxon signed-rank p of log(ratio) against no effect; NaN below 2 blocks.

    Exact to 50 blocks, with ties or zeros to 13; beyond that asymptotic, as scipy.stats.wilcoxon
    has it.
    """
    logs = np.log(ratios)
    if logs.size < 2:
        return float("nan")
    moved = logs[logs != 0]
    if not moved.size:
        return 1.0
    _, places, alike = np.unique(np.abs(moved), return_inverse=True, return_counts=True)
    if logs.size > 50 or (logs.size > 13 and alike.size < logs.size):
        from scipy import stats  # late, as in unpaired_ratio

        return float(stats.wilcoxon(logs).pvalue)
    doubled = (2 * np.cumsum(alike) - alike + 1)[places]  # ranks: whole numbers in ties too
    return _p_of_ranks(tuple(sorted(doubled.tolist())), int(doubled[moved > 0].sum()))


@lru_cache(maxsize=2**16)
def _p_of_ranks(ranks: tuple[int, ...], positive: int) -> float:
    """Two-sided p of the sum of those ranks that have a positive sign, where all signs are alike
    likely; few sums occur: 22 with 6 blocks."""
    ways = np.zeros(sum(ranks) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] += ways[:-rank].copy()
    tail = min(ways[: positive + 1].sum(), ways[positive:].sum())
    return float(min(1.0, 2 * tail / 2 ** len(ranks)))


def simultaneous_intervals(ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intervals of many ratios that hold the true ones all at once 95 times of 100.

    Without an effect the two sides of a block can be exchanged, which turns all its log ratios
    around. Over all (to 13 blocks; else FLIPS random) such exchanges of whole blocks, the largest
    |t| of any cell has a distribution; its 95th percentile is the half width of every interval in
    standard errors. Where no cell has an effect, an interval that excludes 1 is therefore found in
    at most 5 of 100 campaigns, whatever the noise is and however the cells of a block depend on
    each other (Westfall and Young's max-T). Cells with an effect do not change that for the others.

    Args:
        ratios: (cells, blocks); NaN where a cell lacks a block. A column holds blocks that are
            exchanged together, such as the n-th ones of all MPIs.

    Returns:
        (cells, 2): the ends; NaN of cells with fewer than FEWEST_BLOCKS.
    """
    logs = np.log(np.asarray(ratios, dtype=float))
    known = np.isfinite(logs)
    blocks = known.sum(axis=1)
    enough = blocks >= FEWEST_BLOCKS
    ends = np.full((len(logs), 2), np.nan)
    if not enough.any():
        return ends
    logs, blocks = np.where(known, logs, 0.0)[enough], blocks[enough]
    middles = logs.sum(axis=1) / blocks
    squares = (logs**2).sum(axis=1)
    errors = np.sqrt(np.maximum(squares / blocks - middles**2, 0) / (blocks - 1))
    scaled = logs / np.sqrt(np.where(squares > 0, squares, 1) * blocks)[:, np.newaxis]
    largest = [
        np.abs(exchanged @ scaled.T) for exchanged in np.array_split(_exchanges(logs.shape[1]), 64)
    ]
    share = np.concatenate([_t(shares, blocks).max(axis=1) for shares in largest if len(shares)])
    rank = int((1 - CONFIDENCE) * share.size)  # so many may be larger
    reach = np.partition(share, -1 - rank)[-1 - rank]
    widths = np.zeros_like(errors)
    widths[errors > 0] = reach * errors[errors > 0]
    ends[enough] = np.exp(np.column_stack([middles - widths, middles + widths]))
    return ends


def _t(shares: NDArray[np.float64], blocks: NDArray[np.int64]) -> NDArray[np.float64]:
    """|t| of cells with |mean| over root mean square of `shares`."""
    left = np.maximum(1 - np.minimum(shares, 1) ** 2, 1e-15)
    t: NDArray[np.float64] = shares * np.sqrt((blocks - 1) / left)
    return t


@lru_cache(maxsize=64)
def _exchanges(blocks: int) -> NDArray[np.float64]:
    """(ways, blocks): 1, or -1 where the sides of a block are exchanged; the first has none.

    A way and its opposite are one, as both have the same |t|.
    """
    if 2 ** (blocks - 1) <= FLIPS:
        exchanged = np.arange(2 ** (blocks - 1))[:, np.newaxis] >> np.arange(blocks) & 1
    else:
        exchanged = np.random.default_rng(SEED).integers(0, 2, (FLIPS, blocks))
        exchanged[0] = 0
    return np.asarray(1 - 2 * exchanged, dtype=float)


class Tolerance(NamedTuple):
    """A bound on how far null cells stray from 1, and the share of them that it holds.

    Attributes:
        value: 0.03 for 3 %; NaN below LEAST_CELLS.
        share: of null cells, with CONFIDENCE.
        cells: A/A cells that it is taken from.
    """

    value: float
    share: float
    cells: int


def tolerance(strays: Sequence[float] | NDArray[np.float64], least: int) -> Tolerance:
    """The distribution-free tolerance bound of A/A cells (Wilks).

    Of 59 cells and more, the least order statistic that holds TOLERATED of null cells with
    CONFIDENCE. Of fewer, the largest, which holds a smaller share with that confidence: 85 % of 18.

    Args:
        strays: |ratio - 1| of each A/A cell.
        least: cells below which there is none.
    """
    ordered, count = np.sort(np.asarray(strays, dtype=float)), len(strays)
    if count < least:
        return Tolerance(math.nan, math.nan, count)
    share = (1 - CONFIDENCE) ** (1 / count)
    if share < TOLERATED:
        return Tolerance(float(ordered[-1]), share, count)
    from scipy import special  # late, as in _median_ranks

    below = special.bdtr(np.arange(count), count, TOLERATED)  # that so many cells or fewer are
    return Tolerance(float(ordered[np.searchsorted(below, CONFIDENCE)]), TOLERATED, count)


def least_p(blocks: int) -> float:
    """The smallest p that signed_rank can give for so many paired blocks."""
    return min(1.0, 2 * 0.5**blocks)


def short_of_claim(blocks: int) -> str:
    """What keeps an effect from being more than a first look; "" for nothing."""
    if blocks >= CLAIM_BLOCKS:
        return ""
    return f"Seen in {counted(blocks, 'paired block')}; a claim needs {CLAIM_BLOCKS}."


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
    medians = groups.agg(
        median_s=("median_s", list),
        **{key: (key, "median") for key in OWN},
        group=("group", "max"),
        n=("n", "sum"),
        launches=("n", "size"),
    ).reset_index()
    middles = [median_interval(samples) for samples in medians["median_s"]]
    times = ["median_s", "low_s", "high_s"]
    medians[times] = pd.DataFrame(middles, columns=times, dtype=float)
    factors = zip(medians["operation"], medians["ranks"], strict=True)
    moved = [bus_bytes(operation, ranks) for operation, ranks in factors] * medians["bytes"]
    medians["bus_bytes_per_s"] = moved / medians["median_s"]
    return medians[[*keys, *times, *OWN, "bus_bytes_per_s", "group", "n", "launches"]]
