"""What may be an arm's whole effect though it is not the container. Pure.

Knows what every launch recorded, and the plain copies that every launch timed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.ratios import floors, paired_ratio
from experiments.analysis.selection import container_arms
from experiments.model.arms import HOST
from experiments.model.environment import DOCKER
from experiments.results.formats import FRESH, SHARED
from experiments.results.result import Result

UNPACKED = "the image was unpacked for it"


@dataclass(frozen=True)
class Confounders:
    """What differs between arms beside the container.

    Attributes:
        interpreters: {environment: version of Python} where they differ; else empty. Another Python
            takes another time around every operation.
        other_files: {environment: why its files are other inodes than those in Docker}.
        own_files: {MPI: why launches of the reference have no fresh copies of their files}.
        straying_copies: a row for each arm in which plain copies take another time than on the
            host: the copy that strays furthest, as paired_ratio() has it, with `arm`, and
            `straying` and `copies`: how many of the arm's copies stray, and how many there are.
    """

    interpreters: Mapping[str, str] = field(default_factory=dict)
    other_files: Mapping[str, str] = field(default_factory=dict)
    own_files: Mapping[str, str] = field(default_factory=dict)
    straying_copies: pd.DataFrame = field(default_factory=pd.DataFrame)


def confounders(
    launches: Iterable[Result], header: Mapping[str, Any], controls: pd.DataFrame
) -> Confounders:
    """Those of a campaign; arguments as its attributes."""
    versions = {
        str(launch.launch.environment): launch.facts.versions.get("python", "")
        for launch in launches
    }
    references = header["reference_files"]
    return Confounders(
        versions if len(set(versions.values())) > 1 else {},
        _other_files(header["containers"]),
        {mpi: reason for mpi, reason in references.items() if reason != FRESH},
        _straying_copies(controls),
    )


def _other_files(containers: Mapping[str, Any]) -> dict[str, str]:
    """Why environments have other files; older versions unpacked the image for all but Docker."""
    reasons = {}
    for environment, images in containers.items():
        for image in images.values():
            reason = image.get("files", SHARED if environment == DOCKER.kind else UNPACKED)
            if reason != SHARED:
                reasons[environment] = reason
    return reasons


def _straying_copies(controls: pd.DataFrame) -> pd.DataFrame:
    """The container arms with a copy that strays further than any copy of the A/A pair.

    Where the blocks suffice for an interval, it must exclude 1.
    """
    floor = max((stray for *_, stray in floors(controls).strays), default=0.0)
    rows = []
    for arm in container_arms(controls):
        ratios = paired_ratio(controls, "arm", arm, HOST)
        with_interval = ratios.dropna(subset=["low", "high"])
        ratios = ratios if with_interval.empty else with_interval
        strays = np.abs(ratios["ratio"].to_numpy(dtype=float) - 1) > floor
        straying = ratios.loc[strays & ~((ratios["low"] <= 1) & (ratios["high"] >= 1))]
        if not straying.empty:
            worst = straying.loc[[np.log(straying["ratio"].astype(float)).abs().idxmax()]]
            rows.append(worst.assign(arm=arm, straying=len(straying), copies=len(ratios)))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
