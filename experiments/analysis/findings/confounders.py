"""What may be an arm's whole effect though it is not the container. Pure.

Knows what every launch recorded, and the plain copies that every launch timed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.metadata_diff import flatten
from experiments.analysis.ratios import floors, paired_ratio


@dataclass(frozen=True)
class StrayingCopies:
    """An arm in which plain copies, no MPI in them, take another time than in the baseline.

    Attributes:
        ranks, bytes: of the copy that strays furthest.
        ratio, low, high: its time over the baseline's, and the interval; NaN without one.
        straying, copies: how many of the arm's copies stray, and how many there are.
    """

    arm: str
    ranks: int
    bytes: int
    ratio: float
    low: float
    high: float
    straying: int
    copies: int


def interpreters(launches: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """{environment: version of Python} where they differ; else empty.

    Another Python takes another time around every operation.
    """
    versions = {
        launch["launch"]["environment"]: flatten(launch["environment"]).get("versions.python", "")
        for launch in launches
    }
    return versions if len(set(versions.values())) > 1 else {}


def straying_copies(
    controls: pd.DataFrame, arms: Iterable[str], baseline: str
) -> tuple[StrayingCopies, ...]:
    """The arms with a copy that strays further than any copy of the A/A pair.

    Where the blocks suffice for an interval, it must exclude 1.

    Args:
        controls: launch medians of plain copies, as Campaign.controls.
        arms: the arms to compare with the baseline arm.
    """
    floor = max((stray for *_, stray in floors(controls).strays), default=0.0)
    found = []
    for arm in arms:
        ratios = paired_ratio(controls, "arm", arm, baseline)
        with_interval = ratios.dropna(subset=["low", "high"])
        ratios = ratios if with_interval.empty else with_interval
        strays = np.abs(ratios["ratio"].to_numpy(dtype=float) - 1) > floor
        straying = ratios.loc[strays & ~((ratios["low"] <= 1) & (ratios["high"] >= 1))]
        if straying.empty:
            continue
        worst = straying.loc[np.log(straying["ratio"].astype(float)).abs().idxmax()]
        found.append(
            StrayingCopies(
                arm,
                int(worst["ranks"]),
                int(worst["bytes"]),
                float(worst["ratio"]),
                float(worst["low"]),
                float(worst["high"]),
                len(straying),
                len(ratios),
            )
        )
    return tuple(found)
