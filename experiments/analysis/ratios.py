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

from experiments.analysis.statistics import (
    CONTAINER,
    FACTORS,
    TOLERATED,
    Tolerance,
    holm,
    least_p,
    median_ratio,
    signed_rank,
    simultaneous_intervals,
    tolerance,
    verdict,
)
from experiments.model.arms import HOST, TWIN

RATIO = ("ratio", "low", "high", "least", "most", "blocks", "p", "of_block")
"""What is found out about a ratio over its paired blocks; least and most are those of a block.
`of_block` is {block: its ratio}, which jointly() takes."""
BANDS = {"below 4 KiB": 0, "4 to 64 KiB": 2**12, "64 KiB to 4 MiB": 2**16, "above 4 MiB": 2**22 + 1}
"""Sizes with similar noise, each from so many bytes on: what calls cost, and what bytes cost."""
LEAST_CELLS = 8  # of an A/A pair that a noise floor is taken from
REPLICATED = ("mpi", "setting", "ranks", "binding")
"""The factors of a launch that are alike in all launches of a block."""


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
        pooled: both sides are in each launch; of the launches of a block, whatever their arm and
            MPI, the median ratio counts, since they share what happened to the machine meanwhile.

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
    paired = ratios.groupby(keys, sort=True, observed=True)[["pair", "ratio"]].agg(list)
    for values, *of_blocks in paired.itertuples():
        ratio = _over_blocks(*of_blocks)
        rows.append(dict(zip(keys, values, strict=True)) | ratio)
    columns = [*keys, *RATIO, "p_holm", "least_p_holm"]
    return _corrected(pd.DataFrame(rows, columns=columns), [key for key in keys if key != "bytes"])


def group_ratio(paired: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One ratio for each group of cells, as paired_ratio() gives one for each cell.

    Within a block the group's ratio is the median over its cells; the blocks then give median,
    interval and p. Cells that lack a block which others of the group have are left out, so
    that every block's median is over the same cells.

    Args:
        paired: what paired_ratio() gives.
        by: what names a group: "operation", "transport", or any others of the keys of a ratio.

    Returns:
        One row per combination of `by` with RATIO and cells, the number of those that it is of.
    """
    rows: list[dict[str, Any]] = []
    for values, group in paired.groupby(list(by), sort=True, observed=True):
        wide = pd.DataFrame([*group["of_block"]]).sort_index(axis=1).dropna()
        middles = wide.median(axis=0).dropna()
        rows.append(
            dict(zip(by, values, strict=True))
            | _over_blocks([*middles.index], [*middles])
            | {"cells": len(wide)}
        )
    return pd.DataFrame(rows, columns=[*by, *RATIO, "cells"])


def _over_blocks(blocks: Sequence[Any], ratios: Sequence[float]) -> dict[str, Any]:
    """The columns RATIO of one ratio per block."""
    paired = np.asarray(ratios, dtype=float)
    least, most = (paired.min(), paired.max()) if paired.size else (math.nan, math.nan)
    values = (*median_ratio(paired), least, most, paired.size, signed_rank(paired))
    return dict(zip(RATIO, (*values, dict(zip(blocks, ratios, strict=True))), strict=True))


def jointly(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of ratios with joint_low and joint_high instead of of_block.

    The ends are of intervals that hold the true ratios of all rows at once
    (statistics.simultaneous_intervals), and are never narrower than the row's own. Blocks of the
    same number within their REPLICATED factors are exchanged together.
    """
    factors = [name for name in REPLICATED if name in frame]
    ratios = pd.DataFrame(
        [
            (row, *levels, block, ratio)
            for row, levels, of_block in zip(
                range(len(frame)),
                frame[factors].itertuples(index=False, name=None),
                frame["of_block"],
                strict=True,
            )
            for block, ratio in of_block.items()
        ],
        columns=["row", *factors, "block", "ratio"],
    )
    blocks = ratios.groupby(factors, observed=True, dropna=False) if factors else ratios
    ratios["replicate"] = blocks["block"].rank(method="dense")
    wide = ratios.pivot(index="row", columns="replicate", values="ratio")
    ends = simultaneous_intervals(wide.reindex(range(len(frame))).to_numpy(dtype=float))
    own = frame[["low", "high"]].to_numpy(dtype=float)
    return frame.drop(columns="of_block").assign(
        joint_low=np.minimum(ends[:, 0], own[:, 0]), joint_high=np.maximum(ends[:, 1], own[:, 1])
    )


def _pairs(
    cells: pd.DataFrame,
    column: str,
    numerator: str,
    denominator: str,
    value: str,
    pooled: bool = False,
) -> tuple[list[str], pd.DataFrame]:
    """The factors that name a ratio; those, `pair` and `ratio` of every cell and block.

    Two arms that each took turns with the reference arm, and not with each other, are compared
    through it: whatever changed between the two is in neither of their ratios over it.
    """
    if column == "arm" and (apart := _blocks_apart(cells, numerator, denominator)):
        torn = cells["block"].isin(apart)
        keys, whole = _pairs(cells[~torn], column, numerator, denominator, value)
        above, below = (
            _pairs(cells[torn], column, arm, HOST, value)[1] for arm in (numerator, denominator)
        )
        both = above.merge(below, on=[*keys, "pair"], suffixes=("", "_below"))
        both["ratio"] = both["ratio"] / both["ratio_below"]
        filled = [pairs for pairs in (whole, both[[*keys, "pair", "ratio"]]) if len(pairs)]
        return keys, pd.concat(filled, ignore_index=True) if filled else whole
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
        launches = set(zip(frame["block"], frame["arm"], strict=True))
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
    paired = ratios.rename("ratio").reset_index()
    if pooled:
        paired["pair"] = paired["pair"].map({f"{b} {a}": b for b, a in launches})
        logs = np.log(paired["ratio"].astype(float)).groupby([paired[k] for k in (*keys, "pair")])
        paired = np.exp(logs.median()).reset_index()
    return keys, paired


def _of_one_company(frame: pd.DataFrame, numerator: str, denominator: str) -> pd.DataFrame:
    """One launch of each arm in a block: the one that took turns with the other arm's.

    In a block of pairs the reference arm has a launch in each.
    """
    name = frame["block"].map(str) + " " + frame["company"].map(str)
    shared = set(name[frame["arm"] == numerator]) & set(name[frame["arm"] == denominator])
    paired = name.isin(shared)
    return frame[paired | ~frame["block"].isin(frame.loc[paired, "block"])]


def _blocks_apart(cells: pd.DataFrame, numerator: str, denominator: str) -> list[Any]:
    """The blocks in which two arms, none of them the reference arm, took turns in other company."""
    if HOST in (numerator, denominator):
        return []
    together = cells["company"].astype(object).fillna("").ne("")
    sides = cells["arm"].isin([numerator, denominator]) & together
    companies = cells[sides].groupby(["block", "arm"], observed=True)["company"].agg(set)
    both = companies.unstack("arm").dropna()
    if not {numerator, denominator} <= set(both):
        return []
    return [
        block
        for block, one, other in zip(both.index, both[numerator], both[denominator], strict=True)
        if not one & other
    ]


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
    p, blocks = frame["p"].to_numpy(dtype=float), frame["blocks"].to_numpy(dtype=float)
    corrected, reachable = np.full((2, len(frame)), np.nan)
    for places in frame.groupby(series, sort=False, observed=True).indices.values():
        least = int(np.isfinite(p[places]).sum()) * least_p(int(blocks[places].max()))
        corrected[places] = holm(p[places])
        reachable[places] = min(1.0, least) if least else np.nan
    return frame.assign(p_holm=corrected, least_p_holm=reachable)


@dataclass(frozen=True)
class Floors:
    """The smallest effect that may be claimed, by MPI and band of sizes.

    Attributes:
        strays: (MPI, band) and |ratio - 1| of each cell of the A/A pair.
    """

    strays: tuple[tuple[str, str, float], ...]

    def of(self, mpi: str, size: int) -> float:
        """The floor of cells with that MPI and so many bytes per rank; NaN where it is unknown."""
        return self.bound(mpi, band(size)).value

    def bound(self, mpi: str, name: str) -> Tolerance:
        """The floor of a band, the share of null cells that it holds, and A/A cells behind it.

        From the A/A cells of that MPI and band where these bound TOLERATED of null cells; else
        from those of all MPIs in the band, whatever share these bound. Never from other sizes: it
        is unknown where the band has fewer than LEAST_CELLS.
        """
        in_band = [(flavour, stray) for flavour, where, stray in self.strays if where == name]
        own = tolerance([stray for flavour, stray in in_band if flavour == mpi], LEAST_CELLS)
        if own.share == TOLERATED:
            return own
        return tolerance([stray for _, stray in in_band], LEAST_CELLS)

    @property
    def largest(self) -> float:
        """The largest floor that any band has; NaN where none has one."""
        return float(self.frame()["floor"].max())

    def frame(self) -> pd.DataFrame:
        """A row per MPI and band that has A/A cells: mpi, band, and floor, share and cells of what
        bound() gives for them."""
        places = {stray[:2] for stray in self.strays}
        rows = [
            {"mpi": mpi, "band": name, "floor": bound.value, "share": bound.share}
            | {"cells": bound.cells}
            for mpi in sorted({mpi for mpi, _ in places})
            for name in BANDS
            if (mpi, name) in places
            for bound in [self.bound(mpi, name)]
        ]
        return pd.DataFrame(rows, columns=["mpi", "band", "floor", "share", "cells"])


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


def verdicts(frame: pd.DataFrame) -> list[str]:
    """The Verdict of each ratio of jointly(), as text; from its intervals and `floor`."""
    ends = zip(
        *(frame[name] for name in ("low", "high", "floor", "joint_low", "joint_high")), strict=True
    )
    return [str(verdict(low, high, floor, joint)) for low, high, floor, *joint in ends]


def group_floor(twins: pd.DataFrame, by: Sequence[str]) -> float:
    """The floor of ratios of groups; NaN where the A/A pair `twins` has fewer than LEAST_CELLS."""
    ratios = group_ratio(twins, by)["ratio"].to_numpy(dtype=float)
    return tolerance(np.abs(ratios - 1), LEAST_CELLS).value
