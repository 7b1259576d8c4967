"""How fast each launch was beside the others of its arm, in the order in which they ran. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.statistics import FACTORS

COLUMNS = ("began_s", "arm", "mpi", "block", "pace")


def paces(launches: Iterable[Mapping[str, Any]], cells: pd.DataFrame) -> pd.DataFrame:
    """A row per launch that stored when it began.

    Args:
        launches: as Campaign.launches.
        cells: launch medians, columns as experiments.analysis.reading.COLUMNS.

    Returns:
        COLUMNS: began_s, seconds after the first launch; pace, the median over its cells of the
        launch's time over the median time of the same cell in all launches of its arm: 1.1 is a
        launch that took 10 % longer than its arm usually does.
    """
    began = {
        (each["launch"]["block"], each["launch"]["arm"], " ".join(each.get("company", ()))): float(
            each["began"]
        )
        for each in launches
        if "began" in each
    }
    usual = cells.groupby(["arm", *FACTORS], observed=True)["median_s"].transform("median")
    company = cells["company"].astype(object).fillna("")  # no file of a campaign may have one
    found = (
        cells.assign(pace=cells["median_s"] / usual, company=company)
        .groupby(["block", "arm", "company", "mpi"], observed=True)["pace"]
        .median()
        .reset_index()
    )
    keys = zip(found["block"], found["arm"], found["company"], strict=True)
    found["began_s"] = [began.get(key, np.nan) for key in keys]
    found = found.dropna(subset=["began_s"]).sort_values(["began_s", "arm"], ignore_index=True)
    found["began_s"] -= found["began_s"].min()
    return found[list(COLUMNS)]
