"""What may be an arm's whole effect though it is not the container: one sentence each.

Knows what every launch recorded and the plain copies that every launch timed; draws nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.metadata_diff import flatten
from experiments.analysis.ratios import floors, paired_ratio
from plots.analysis import data_path
from plots.layout.labels import bytes_text, ranks_text, ratio_and_interval


def recorded(launches: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Differences in what the launches recorded that are large enough to be the whole effect.

    Without single copy an MPI copies twice through shared memory: arms that differ in it measure a
    rule of the container's profile. paths.sentences() tells more of it than this one sentence.
    Another Python takes another time around every operation.
    """
    launches = list(launches)
    lost = data_path.short(launches)
    pythons = {
        launch["launch"]["environment"]: flatten(launch["environment"]).get("versions.python", "")
        for launch in launches
    }
    told = ", ".join(f"{name} {value}" for name, value in _host_first(pythons))
    others = f"The interpreters differ: Python: {told}." if len(set(pythons.values())) > 1 else ""
    return tuple(each for each in (lost, others) if each)


def copied(controls: pd.DataFrame, arms: Iterable[str], baseline: str) -> tuple[str, ...]:
    """Arms in which even a plain copy, no MPI in it, takes another time than in the baseline.

    Args:
        controls: launch medians of plain copies, as Campaign.controls.
        arms: the arms to compare with the baseline arm.

    Returns:
        A sentence for each arm with a copy whose ratio strays further than any copy of the A/A
        pair and whose interval, where the blocks suffice for one, excludes 1.
    """
    floor = max((stray for *_, stray in floors(controls).strays), default=0.0)
    told = []
    for arm in arms:
        ratios = paired_ratio(controls, "arm", arm, baseline)
        with_interval = ratios.dropna(subset=["low", "high"])
        ratios = ratios if with_interval.empty else with_interval
        strays = np.abs(ratios["ratio"].to_numpy(dtype=float) - 1) > floor
        apart = ratios.loc[strays & ~((ratios["low"] <= 1) & (ratios["high"] >= 1))]
        if apart.empty:
            continue
        worst = apart.loc[np.log(apart["ratio"].astype(float)).abs().idxmax()]
        value = ratio_and_interval(worst["ratio"], worst["low"], worst["high"])
        told.append(
            f"The control differs: a plain copy without MPI already takes {value} times as long in "
            f"{arm} at {bytes_text(int(worst['bytes']))}, {ranks_text(int(worst['ranks']))}; "
            f"{len(apart)} of {len(ratios)} copies stray like that, and none of it is the MPI."
        )
    return tuple(told)


def _host_first(values: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted(values.items(), reverse=True)
