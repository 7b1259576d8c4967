"""Launch medians -> paired ratios of each peer, and which MPI is the best of each cell. Pure."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.bench.names import AGAIN, DIRECT, MPI_ITSELF, PLAIN
from experiments.environments.mpiexec import FLAVOURS
from experiments.statistics import CONFIDENCE, bca_median, median_interval

CELL = ["ranks", "operation", "bytes", "form"]
COLUMNS = (
    *CELL,
    *("peer", "flavour", "seconds", "low_s", "high_s", "ratio", "low", "high", "blocks", "best"),
)


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
        COLUMNS, a row per cell and peer: the median ratio over blocks with its BCa interval, the
        median time with its own (NaN below 6 blocks). A peer that ran beside several MPIs
        (pickle, gloo) is shown beside the one with which it did best. `best` marks the MPI with
        the lowest ratio of each cell.
    """
    found = pd.DataFrame(list(_ratios(medians)), columns=list(COLUMNS))
    found = found.sort_values([*CELL, "peer", "ratio", "flavour"], kind="stable")
    found = found.groupby([*CELL, "peer"], as_index=False, observed=True).first()
    mpis = found[found["peer"].isin(FLAVOURS)]
    lowest = mpis.groupby(CELL, observed=True)["ratio"].idxmin()
    found["best"] = found.index.isin(lowest)
    return found[list(COLUMNS)]


def _ratios(medians: pd.DataFrame) -> Iterator[dict[str, Any]]:
    keys = [*CELL, "flavour"]
    for values, cell in medians.groupby(keys, sort=True, observed=True):
        times = cell.pivot(index="block", columns="contender", values="median_s")
        for contender in times.columns.drop([DIRECT, AGAIN], errors="ignore"):
            ratios = (times[contender] / times[DIRECT]).dropna()
            middle = bca_median(ratios.to_numpy(dtype=float))
            flavour = values[keys.index("flavour")]
            yield (
                dict(zip(keys, values, strict=True))
                | {"peer": flavour if contender == MPI_ITSELF else contender}
                | _times(times[contender].dropna())
                | {"blocks": ratios.size}
                | {"ratio": middle.value, "low": middle.low, "high": middle.high, "best": False}
            )


def noise(medians: pd.DataFrame) -> float:
    """How far direct strays from itself: the 95th percentile over cells of |ratio - 1|, paired."""
    times = medians[medians["form"] == PLAIN].pivot_table(
        index=["ranks", "operation", "bytes", "flavour", "block"],
        columns="contender",
        values="median_s",
        observed=True,
    )
    if AGAIN not in times:
        return float("nan")
    paired = (times[AGAIN] / times[DIRECT]).dropna()
    ratios = paired.groupby(["ranks", "operation", "bytes"]).median()
    return float(np.quantile(np.abs(ratios.to_numpy(dtype=float) - 1), CONFIDENCE))
