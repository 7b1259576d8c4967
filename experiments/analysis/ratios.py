"""Paired ratios over blocks, and the smallest effect that a campaign can claim. Pure functions.

Sources: Wilcoxon, Biometrics 1 (1945) 80; Holm, Scand. J. Stat. 6 (1979) 65 (correction).
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.analysis.statistics import (
    CONFIDENCE,
    CONTAINER,
    FACTORS,
    holm,
    least_p,
    median_ratio,
    signed_rank,
)
from experiments.model.arms import HOST, TWIN

RATIO = ("ratio", "low", "high", "least", "most", "blocks", "p")
"""What is found out about a ratio over its paired blocks; least and most are those of a block."""
BANDS = {"below 4 KiB": 0, "4 to 64 KiB": 2**12, "64 KiB to 4 MiB": 2**16, "above 4 MiB": 2**22 + 1}
"""Sizes with similar noise, each from so many bytes on: what calls cost, and what bytes cost."""
LEAST_CELLS = 8  # of an A/A pair that a noise floor is taken from


def paired_ratio(
    cells: pd.DataFrame,
    column: str,
    numerator: str,
    denominator: str,
    value: str = "median_s",
    pooled: bool = False,
) -> pd.DataFrame:
    """Ratio within each block, then median and exact interval over the blocks.

    Of two launches or cells that took turns the ratio of medians is the median over the turns of
    the ratio in each; else, and of any other value, that of what they have over all turns.

    Only like is paired with like: a pair with sides timed in groups of different sizes is left
    out, since a longer group hides more of the cost of reading the clock.

    Args:
        cells: launch medians as reading.load gives them.
        column: what differs between the two sides: "arm", "kind", "transport", "locality" or
            "binding".
        numerator, denominator: the two values of that column.
        value: "median_s", or "p99_s" for what the slowest operations take.
        pooled: both sides are in each launch, and launches of all arms and MPIs count alike.

    Returns:
        One row per combination of the other factors with RATIO, p_holm and least_p_holm. Holm's
        family is one series of a figure: the rows that differ in `bytes` only; a false rejection is
        then to be expected in one series of twenty, and figures show several. All cells of a figure
        as one family would be stricter than 10 blocks can meet: their least p times more than 25
        cells is above 0.05 whatever the effect, and the verdicts rest on intervals beyond the noise
        floor, not on p. least_p_holm is the smallest p_holm that the blocks of the series could
        reach. Comparing arms, the denominator's factors stand for both; comparing bindings, which
        never share a block, the n-th block of one is paired with the n-th of the other.
    """
    keys, ratios = _pairs(cells, column, numerator, denominator, value, pooled)
    rows: list[dict[str, Any]] = []
    paired = ratios.groupby(keys, sort=True, observed=True)["ratio"].agg(list)
    for values, each in zip(paired.index, paired, strict=True):
        found = _over_blocks(np.asarray(each, dtype=float))
        rows.append(dict(zip(keys, values, strict=True)) | found)
    columns = [*keys, *RATIO, "p_holm", "least_p_holm"]
    return _corrected(pd.DataFrame(rows, columns=columns), [key for key in keys if key != "bytes"])


def group_ratio(
    cells: pd.DataFrame, column: str, numerator: str, denominator: str, by: Sequence[str]
) -> pd.DataFrame:
    """One ratio for each group of cells, as paired_ratio() gives one for each cell.

    Within a block the group's ratio is the median over its cells; the blocks then give median,
    interval and p. Cells that lack a block which others of the group have are left out, so
    that every block's median is over the same cells.

    Args:
        cells, column, numerator, denominator: as paired_ratio's.
        by: what names a group: "operation", "transport", or any others of the keys of a ratio.

    Returns:
        One row per combination of `by` with RATIO and cells, the number of those that it is of.
    """
    keys, ratios = _pairs(cells, column, numerator, denominator, "median_s")
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
    least, most = (paired.min(), paired.max()) if paired.size else (math.nan, math.nan)
    values = (*median_ratio(paired), least, most, paired.size, signed_rank(paired))
    return dict(zip(RATIO, values, strict=True))


def _pairs(
    cells: pd.DataFrame,
    column: str,
    numerator: str,
    denominator: str,
    value: str,
    pooled: bool = False,
) -> tuple[list[str], pd.DataFrame]:
    """The factors that name a ratio; those, `pair` and `ratio` of every cell and block."""
    free = {column, *CONTAINER} if column == "arm" else {column}
    if column == "kind":
        free.add("emulated")
    keys = [factor for factor in FACTORS if factor not in free]
    if pooled:
        keys = [key for key in keys if key not in ("mpi", "setting")]
    elif column != "arm":
        keys.insert(0, "arm")
    frame = cells[cells[column].isin([numerator, denominator])].copy()
    if not {numerator, denominator} <= set(frame[column]):
        return keys, pd.DataFrame(columns=[*keys, "pair", "ratio"])
    frame["pair"] = frame["block"]
    if column == "binding":  # the n-th block of its MPI, ranks and binding
        replicates = frame.groupby(["mpi", "ranks", "binding"])["block"]
        frame["pair"] = replicates.rank(method="dense").astype(int)
    if column == "arm":
        frame = _of_one_company(frame, numerator, denominator)
    if pooled:
        frame["pair"] = frame["block"].astype(str) + " " + frame["arm"]
    frame = frame.assign(**{"with": _company(frame, column)})
    values = [value, "group", "turns", "with"]
    every = frame.groupby([*keys, "pair", column], observed=True)[values].first()
    wide = pd.DataFrame(every.unstack(column))
    wide = wide.dropna(subset=[(value, numerator), (value, denominator)])
    group = wide["group"]
    alike = wide[group[numerator] == group[denominator]]
    ratios = alike[value][numerator] / alike[value][denominator]
    if value == "median_s" and len(alike):
        ratios = _in_turns(alike["turns"], alike["with"], numerator, denominator).fillna(ratios)
    return keys, ratios.rename("ratio").reset_index()


def _of_one_company(frame: pd.DataFrame, numerator: str, denominator: str) -> pd.DataFrame:
    """One launch of each arm in a block: the one that took turns with the other arm's.

    In a block of pairs the reference arm has a launch in each.
    """
    name = frame["block"].map(str) + " " + frame["company"].map(str)
    shared = set(name[frame["arm"] == numerator]) & set(name[frame["arm"] == denominator])
    paired = name.isin(shared)
    return frame[paired | ~frame["block"].isin(frame.loc[paired, "block"])]


def _in_turns(
    turns: pd.DataFrame, company: pd.DataFrame, numerator: str, denominator: str
) -> "pd.Series[float]":
    """Median ratio over the turns of two cells; NaN where they did not take turns together."""
    together = company[numerator] == company[denominator]  # False where either is missing
    together &= company[numerator] != ""  # two that ran alone ran at different times
    pairs = zip(turns[numerator], turns[denominator], together, strict=True)
    return pd.Series(
        [
            float(np.exp(np.median(np.log(above) - np.log(below))))
            if shared and above and len(above) == len(below)
            else math.nan
            for above, below, shared in pairs
        ],
        index=turns.index,
        dtype=float,
    )


def company_ratio(cells: pd.DataFrame, alone: pd.DataFrame) -> pd.DataFrame:
    """The reference arm in company over the same arm alone: what neighbours that sleep cost it.

    Args:
        cells, alone: those of a reading.Campaign.

    Returns:
        One row per cell that both measured, in groups of one size and from the same barrier:
        FACTORS, `block` and `ratio` of the medians. They are of one launch each, one right after
        the other, so that no row has an interval: the median over rows is what to quote. Empty
        where nothing was measured alone.
    """
    keys = ["block", *FACTORS, "group", "barrier"]
    company = cells[cells["arm"] == HOST].drop_duplicates(keys)
    both = company.merge(alone, on=keys, suffixes=("", "_alone"))
    both["ratio"] = both["median_s"] / both["median_s_alone"]
    return both[["block", *FACTORS, "ratio"]]


def _company(frame: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Alike for cells that took turns with each other; "" for those that took none."""
    if column == "arm":
        return frame["company"]
    return frame["contest"].astype(str) if column == "transport" else pd.Series("", frame.index)


def _corrected(frame: pd.DataFrame, series: list[str]) -> pd.DataFrame:
    """With p_holm and least_p_holm, each series a family of its own."""
    for _, group in frame.groupby(series, sort=False, observed=True):
        least = int(group["p"].notna().sum()) * least_p(int(group["blocks"].max()))
        frame.loc[group.index, "p_holm"] = holm(group["p"].to_numpy(dtype=float))
        frame.loc[group.index, "least_p_holm"] = min(1.0, least) if least else np.nan
    return frame


@dataclass(frozen=True)
class Floors:
    """The smallest effect that may be claimed, by MPI and band of sizes.

    Attributes:
        strays: (MPI, band) and |ratio - 1| of each cell of the A/A pair.
    """

    strays: tuple[tuple[str, str, float], ...]

    def of(self, mpi: str, size: int) -> float:
        """The floor of cells with that MPI and so many bytes per rank.

        From the A/A cells of that MPI and band, where those are LEAST_CELLS or more; else from
        those of the MPI, else from all. NaN where even those are fewer.
        """
        wanted = (mpi, band(size))
        for depth in (2, 1):
            found = _floor([each[2] for each in self.strays if each[:depth] == wanted[:depth]])
            if not math.isnan(found):
                return found
        return self.overall

    @property
    def overall(self) -> float:
        """The floor of all cells together; NaN below LEAST_CELLS."""
        return _floor([stray for *_, stray in self.strays])

    def frame(self) -> pd.DataFrame:
        """A row per MPI and band that has A/A cells: mpi, band, cells, floor of those cells.

        The floor is NaN below LEAST_CELLS: what is compared there has that of of().
        """
        rows = [
            {"mpi": mpi, "band": name, "cells": len(found), "floor": _floor(found)}
            for mpi in sorted({each[0] for each in self.strays})
            for name in BANDS
            if (found := [each[2] for each in self.strays if each[:2] == (mpi, name)])
        ]
        return pd.DataFrame(rows, columns=["mpi", "band", "cells", "floor"])


def band(size: int) -> str:
    """The name of the band that a message of so many bytes belongs to."""
    return list(BANDS)[bisect_right(list(BANDS.values()), size) - 1]


def floors(cells: pd.DataFrame, value: str = "median_s") -> Floors:
    """How far the A/A pair strays from 1, in each of its cells."""
    return floors_of(paired_ratio(cells, "arm", TWIN, HOST, value))


def floors_of(twins: pd.DataFrame) -> Floors:
    """How far an A/A pair strays from 1; `twins` has mpi, bytes and ratio, a row per cell."""
    levels = zip(twins["mpi"], twins["bytes"], twins["ratio"], strict=True)
    return Floors(tuple((str(mpi), band(int(size)), abs(r - 1)) for mpi, size, r in levels))


def group_floor(cells: pd.DataFrame, by: Sequence[str]) -> float:
    """The floor of ratios of groups; NaN where the A/A pair has fewer than LEAST_CELLS groups."""
    ratios = group_ratio(cells, "arm", TWIN, HOST, by)["ratio"].to_numpy(dtype=float)
    return _floor(np.abs(ratios - 1))


def _floor(strays: Sequence[float] | NDArray[np.float64]) -> float:
    """NaN of fewer than LEAST_CELLS."""
    return float(np.quantile(strays, CONFIDENCE)) if len(strays) >= LEAST_CELLS else math.nan
