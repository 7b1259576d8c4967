"""Paired ratios over blocks, and the smallest effect that a campaign can claim. Pure functions.

Sources: Wilcoxon, Biometrics 1 (1945) 80; Holm, Scand. J. Stat. 6 (1979) 65 (correction).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.statistics import (
    CONFIDENCE,
    CONTAINER,
    FACTORS,
    bca_median,
    holm,
    least_p,
    signed_rank,
)

RATIO = ("ratio", "low", "high", "blocks", "p")
"""What is found out about a ratio over its paired blocks."""


def paired_ratio(
    cells: pd.DataFrame, column: str, numerator: str, denominator: str
) -> pd.DataFrame:
    """Ratio within each block, then median and BCa interval over the blocks.

    Of two launches that took turns it is the median over the turns of the ratio in each; else the
    ratio of the launch medians.

    Only like is paired with like: a pair whose sides were timed in groups of different sizes is
    left out, since a longer group hides more of the cost of reading the clock.

    Args:
        cells: launch medians as reading.load gives them.
        column: what differs between the two sides: "arm", "kind", "transport", "locality" or
            "binding".
        numerator, denominator: the two values of that column.

    Returns:
        One row per combination of the other factors with ratio, low, high, blocks, p, p_holm and
        least_p_holm. Holm's family is one series of a figure: the rows that differ in `bytes`
        only; a false rejection is then to be expected in one series of twenty, and figures show
        several. All cells of a figure as one family would be stricter than 10 blocks can meet:
        their least p times more than 25 cells is above 0.05 whatever the effect, and the verdicts
        rest on intervals beyond the noise floor, not on p. least_p_holm is the smallest p_holm
        that the blocks of the series could reach. Comparing arms, the denominator's factors stand
        for both; comparing bindings, which never share a block, the n-th block of one is paired
        with the n-th of the other.
    """
    keys, ratios = _pairs(cells, column, numerator, denominator)
    rows: list[dict[str, Any]] = []
    for values, group in ratios.groupby(keys, sort=True, observed=True):
        paired = group["ratio"].to_numpy(dtype=float)
        rows.append(dict(zip(keys, values, strict=True)) | _over_blocks(paired))
    columns = [*keys, *RATIO, "p_holm", "least_p_holm"]
    return _corrected(pd.DataFrame(rows, columns=columns), [key for key in keys if key != "bytes"])


def group_ratio(
    cells: pd.DataFrame, column: str, numerator: str, denominator: str, by: Sequence[str]
) -> pd.DataFrame:
    """One ratio for each group of cells, as paired_ratio() gives one for each cell.

    Within a block the group's ratio is the median over its cells; the blocks then give median,
    BCa interval and p. Cells that lack a block which others of the group have are left out, so
    that every block's median is over the same cells.

    Args:
        cells, column, numerator, denominator: as paired_ratio's.
        by: what names a group: "operation", "transport", or any others of the keys of a ratio.

    Returns:
        One row per combination of `by` with ratio, low, high, blocks, p and cells, the number of
        cells that it stands for.
    """
    keys, ratios = _pairs(cells, column, numerator, denominator)
    rows: list[dict[str, Any]] = []
    for values, group in ratios.groupby(list(by), sort=True, observed=True):
        wide = group.pivot(
            index=[key for key in keys if key not in by], columns="pair", values="ratio"
        ).dropna()
        rows.append(
            dict(zip(by, values, strict=True))
            | _over_blocks(wide.median(axis=0).dropna().to_numpy(dtype=float))
            | {"cells": len(wide)}
        )
    return pd.DataFrame(rows, columns=[*by, *RATIO, "cells"])


def _over_blocks(paired: NDArray[np.float64]) -> dict[str, float]:
    """The columns RATIO of one ratio per block."""
    middle = bca_median(paired)
    values = (*middle, paired.size, signed_rank(paired))
    return dict(zip(RATIO, values, strict=True))


def _pairs(
    cells: pd.DataFrame, column: str, numerator: str, denominator: str
) -> tuple[list[str], pd.DataFrame]:
    """The factors that name a ratio; those, `pair` and `ratio` of every cell and block."""
    free = {column, *CONTAINER} if column == "arm" else {column}
    if column == "kind":
        free.add("emulated")
    keys = [factor for factor in FACTORS if factor not in free]
    if column != "arm":
        keys.insert(0, "arm")
    frame = cells[cells[column].isin([numerator, denominator])].copy()
    if not {numerator, denominator} <= set(frame[column]):
        return keys, pd.DataFrame(columns=[*keys, "pair", "ratio"])
    frame["pair"] = _replicate(frame) if column == "binding" else frame["block"]
    values = ["median_s", "group", "turns", "company"]
    every = frame.groupby([*keys, "pair", column], observed=True)[values].first()
    wide = pd.DataFrame(every.unstack(column))
    wide = wide.dropna(subset=[("median_s", numerator), ("median_s", denominator)])
    group = wide["group"]
    alike = wide[group[numerator] == group[denominator]]
    ratios = alike["median_s"][numerator] / alike["median_s"][denominator]
    if column == "arm" and len(alike):
        ratios = _in_turns(alike["turns"], alike["company"], numerator, denominator).fillna(ratios)
    return keys, ratios.rename("ratio").reset_index()


def _in_turns(
    turns: pd.DataFrame, company: pd.DataFrame, numerator: str, denominator: str
) -> "pd.Series[float]":
    """Median ratio over the turns of two launches; NaN where they did not take turns together."""
    together = company[numerator] == company[denominator]  # False where either is missing
    pairs = zip(turns[numerator], turns[denominator], together, strict=True)
    return pd.Series(
        [
            float(np.median(np.asarray(above) / np.asarray(below)))
            if shared and above and len(above) == len(below)
            else math.nan
            for above, below, shared in pairs
        ],
        index=turns.index,
        dtype=float,
    )


def _corrected(frame: pd.DataFrame, series: list[str]) -> pd.DataFrame:
    """With p_holm and least_p_holm, each series a family of its own."""
    for _, group in frame.groupby(series, sort=False, observed=True):
        least = int(group["p"].notna().sum()) * least_p(int(group["blocks"].max()))
        frame.loc[group.index, "p_holm"] = holm(group["p"].to_numpy(dtype=float))
        frame.loc[group.index, "least_p_holm"] = min(1.0, least) if least else np.nan
    return frame


def _replicate(frame: pd.DataFrame) -> "pd.Series[int]":
    """The how-manieth block of its MPI, ranks and binding each row belongs to."""
    return frame.groupby(["mpi", "ranks", "binding"])["block"].rank(method="dense").astype(int)


def noise_floor(cells: pd.DataFrame) -> float:
    """The smallest effect that may be claimed: how far the A/A pair strays from 1.

    Returns:
        The 95th percentile over cells of |ratio - 1| of host-again over host; NaN where the
        campaign holds no A/A pair.
    """
    twins = paired_ratio(cells, "arm", "host-again", "host")
    if twins.empty:
        return float("nan")
    return float(np.quantile(np.abs(twins["ratio"].to_numpy(dtype=float) - 1), CONFIDENCE))
