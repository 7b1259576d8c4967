"""How near operations come to what the links between hosts allow. Pure."""

from typing import Any

import pandas as pd

from experiments.analysis.statistics import FACTORS, median_interval
from experiments.model.arms import TWIN

KEYS = ("arm", *FACTORS)
COLUMNS = (*KEYS, "over", "low", "high", "carried", "launches")


def wires(cells: pd.DataFrame) -> pd.DataFrame:
    """Time over the least possible, of each cell between hosts with links of a known rate.

    Args:
        cells: columns as experiments.analysis.reading.COLUMNS.

    Returns:
        One row per arm and FACTORS: `over`, the median over launches of the launch's median over
        the least time of its links, with the ends of its interval; `carried`, the bytes of the
        busiest link over the least that it can carry, median over launches; launches.
    """
    frame = cells[(cells["arm"] != TWIN) & cells["wire_s"].notna()]
    rows: list[dict[str, Any]] = []
    for values, group in frame.groupby(list(KEYS), sort=True, observed=True):
        middle = median_interval((group["median_s"] / group["wire_s"]).to_numpy(dtype=float))
        rows.append(
            dict(zip(KEYS, values, strict=True))
            | {"over": middle.value, "low": middle.low, "high": middle.high}
            | {"carried": float(group["carried"].median()), "launches": len(group)}
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))
