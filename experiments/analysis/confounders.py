"""What may be an arm's whole effect though it is not the container. Pure.

Knows what every launch recorded, and the plain copies that every launch timed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.metadata_diff import flatten
from experiments.analysis.ratios import floors, paired_ratio
from experiments.model.environment import DOCKER
from experiments.results.formats import FRESH, SHARED

UNPACKED = "the image was unpacked for it"


def interpreters(launches: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """{environment: version of Python} where they differ; else empty.

    Another Python takes another time around every operation.
    """
    versions = {
        launch["launch"]["environment"]: flatten(launch["environment"]).get("versions.python", "")
        for launch in launches
    }
    return versions if len(set(versions.values())) > 1 else {}


def other_files(header: Mapping[str, Any]) -> dict[str, str]:
    """{environment: why its files are other inodes than those of Docker's containers}.

    Args:
        header: campaign.json; of older versions, which unpacked the image for every other arm.
    """
    reasons = {}
    for environment, images in header["containers"].items():
        for image in images.values():
            reason = image.get("files", SHARED if environment == DOCKER.kind else UNPACKED)
            if reason != SHARED:
                reasons[environment] = reason
    return reasons


def own_files(header: Mapping[str, Any]) -> dict[str, str]:
    """{MPI: why launches of the reference have no fresh copies of their files}."""
    reasons = header["reference_files"]
    return {mpi: reason for mpi, reason in reasons.items() if reason != FRESH}


def straying_copies(controls: pd.DataFrame, arms: Iterable[str], baseline: str) -> pd.DataFrame:
    """The arms with a copy that strays further than any copy of the A/A pair.

    Where the blocks suffice for an interval, it must exclude 1.

    Args:
        controls: launch medians of plain copies, as Campaign.controls.
        arms: the arms to compare with the baseline arm.

    Returns:
        A row for each: the copy that strays furthest, as paired_ratio() has it, with `arm`, and
        `straying` and `copies`: how many of the arm's copies stray, and how many there are.
    """
    floor = max((stray for *_, stray in floors(controls).strays), default=0.0)
    found = []
    for arm in arms:
        ratios = paired_ratio(controls, "arm", arm, baseline)
        with_interval = ratios.dropna(subset=["low", "high"])
        ratios = ratios if with_interval.empty else with_interval
        strays = np.abs(ratios["ratio"].to_numpy(dtype=float) - 1) > floor
        straying = ratios.loc[strays & ~((ratios["low"] <= 1) & (ratios["high"] >= 1))]
        if not straying.empty:
            worst = straying.loc[[np.log(straying["ratio"].astype(float)).abs().idxmax()]]
            found.append(worst.assign(arm=arm, straying=len(straying), copies=len(ratios)))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()
