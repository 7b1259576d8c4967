"""How near operations come to what the links between hosts allow. Pure."""

import pandas as pd

from experiments.analysis.statistics import FACTORS, over_launches
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
    carried = frame.groupby(list(KEYS), sort=True, observed=True)["carried"].median().reset_index()
    ratios = frame["median_s"] / frame["wire_s"]  # in the place of seconds, for their intervals
    found = over_launches(frame.assign(median_s=ratios)).merge(carried, on=list(KEYS))
    names = {"median_s": "over", "low_s": "low", "high_s": "high"}
    return found.rename(columns=names)[list(COLUMNS)]
