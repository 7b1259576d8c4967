"""Launch medians -> paired ratios of each peer, and which MPI is the best of each cell. Pure.

Where MPIs were tried in several settings, each is shown in the setting in which it did best in that
cell. The lowest of many medians is low by chance too: of N equals it lies below their true ratio,
by the more the larger N is. That counts against direct, never for it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.bench.names import AGAIN, DIRECT, MPI_ITSELF, OTHER_BUILD, OURS
from experiments.environments.mpiexec import FLAVOURS
from experiments.statistics import CONFIDENCE, median_interval, median_ratio

CELL = ["ranks", "operation", "bytes", "form"]
LAUNCH = ["block", "flavour", "setting"]
"""What names a launch among those of one rank count."""
COLUMNS = (
    *CELL,
    *("peer", "flavour", "setting", "seconds", "low_s", "high_s"),
    *("ratio", "low", "high", "blocks", "best"),
)
ANY = "any"
"""The MPI beside which the other build was measured: all of them count."""
SLOWER = 0.97
"""Ratio of the other build's time over direct's below which direct is noticeably slower."""


def own(medians: pd.DataFrame) -> pd.DataFrame:
    """Direct's own time in each cell, over all launches of all MPIs.

    Returns:
        CELL; seconds with low_s and high_s, the median and its interval; share, the median of the
        least time that the launch's copy bandwidth allows, over the time taken.
    """
    mine = medians[medians["contender"] == DIRECT]
    rows = [
        dict(zip(CELL, values, strict=True))
        | _times(cell["median_s"])
        | {"share": float((cell["bound_s"] / cell["median_s"]).median())}
        for values, cell in mine.groupby(CELL, sort=True, observed=True)
    ]
    return pd.DataFrame(rows, columns=[*CELL, "seconds", "low_s", "high_s", "share"])


def _times(seconds: "pd.Series[float]") -> dict[str, float]:
    middle = median_interval(np.asarray(seconds, dtype=np.float64))
    return {"seconds": middle.value, "low_s": middle.low, "high_s": middle.high}


def against_peers(medians: pd.DataFrame) -> pd.DataFrame:
    """Time of every peer over direct's in the same launch; above 1 direct is faster.

    Returns:
        COLUMNS, a row per cell and peer: the median ratio over blocks with its interval, the
        median time with its own (NaN below 6 blocks). An MPI is shown in the setting in which it
        did best; a peer that ran beside several MPIs (pickle, gloo), beside the one with which it
        did best. Another build, which no MPI changes, is shown over all launches. `best` marks
        the MPI with the lowest ratio of each cell.
    """
    found = pd.DataFrame([*_ratios(medians), *_other_build(medians)], columns=list(COLUMNS))
    found = found.sort_values([*CELL, "peer", "ratio", "flavour", "setting"], kind="stable")
    found = found.drop_duplicates([*CELL, "peer"], ignore_index=True)
    mpis = found[found["peer"].isin(FLAVOURS)]
    lowest = mpis.groupby(CELL, observed=True)["ratio"].idxmin()
    found["best"] = found.index.isin(lowest)
    return found[list(COLUMNS)]


def _ratios(medians: pd.DataFrame) -> Iterator[dict[str, Any]]:
    keys = [*CELL, "flavour", "setting"]
    for values, cell in medians.groupby(keys, sort=True, observed=True):
        times = cell.pivot(index="block", columns="contender", values="median_s")
        flavour = values[keys.index("flavour")]
        for contender in times.columns.drop(list(OURS), errors="ignore"):
            peer = flavour if contender == MPI_ITSELF else contender
            row = dict(zip(keys, values, strict=True))
            yield row | {"peer": peer} | _paired(times, str(contender))


def _other_build(medians: pd.DataFrame) -> Iterator[dict[str, Any]]:
    both = medians[medians["contender"].isin([DIRECT, OTHER_BUILD])]
    for values, cell in both.groupby(CELL, sort=True, observed=True):
        times = cell.pivot(index=LAUNCH, columns="contender", values="median_s")
        if OTHER_BUILD in times:
            row = dict(zip(CELL, values, strict=True)) | {"peer": OTHER_BUILD}
            yield row | {"flavour": ANY, "setting": ANY} | _paired(times, OTHER_BUILD)


def _paired(times: pd.DataFrame, contender: str) -> dict[str, Any]:
    """A contender's times and ratios; a row of `times` per launch, a column per contender."""
    ratios = (times[contender] / times[DIRECT]).dropna()
    middle = median_ratio(ratios.to_numpy(dtype=float))
    return _times(times[contender].dropna()) | {
        "blocks": ratios.size,
        "ratio": middle.value,
        "low": middle.low,
        "high": middle.high,
        "best": False,
    }


def slower_cells(compared: pd.DataFrame) -> pd.DataFrame:
    """The rows of against_peers() in which another build is surely faster by more than 3 %.

    Surely: the whole interval is below SLOWER; without an interval, the ratio.
    """
    rows = compared[compared["peer"] == OTHER_BUILD]
    return rows[rows["high"].fillna(rows["ratio"]) < SLOWER]


def tried(medians: pd.DataFrame) -> int:
    """How many pairs of an MPI and a setting the best of a cell is chosen from, at most."""
    mpis = medians[medians["contender"] == MPI_ITSELF]
    return len(mpis[["flavour", "setting"]].drop_duplicates())


def noise(medians: pd.DataFrame) -> float:
    """How far direct strays from itself: the 95th percentile over cells of |ratio - 1|, paired."""
    times = medians.pivot_table(
        index=[*CELL, *LAUNCH], columns="contender", values="median_s", observed=True
    )
    if AGAIN not in times:
        return float("nan")
    paired = (times[AGAIN] / times[DIRECT]).dropna()
    ratios = paired.groupby(CELL).median()
    return float(np.quantile(np.abs(ratios.to_numpy(dtype=float) - 1), CONFIDENCE))
