"""Everything that the figures, the tables and the answers are made of, computed once.

Knows what a campaign asked for, what it found and what it could not measure; draws nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.results import Campaign
from experiments.schedule import TWIN
from experiments.statistics import noise_floor, over_launches, paired_ratio
from plots import caveats

HOST = "host"
CONTAINERS = ("docker", "podman")
BASELINE = "regular"
OURS = "direct"
UNFINISHED = "no launch of it is finished"


@dataclass(frozen=True)
class Findings:
    """What a campaign found. All times in seconds, all ratios of times paired within a block.

    Attributes:
        times: statistics.over_launches of every arm but the A/A twin.
        speedups: regular over each other kind (column `kind`); above 1 that kind is faster.
        placements: spread over packed and remote over local (column `factor`); above 1 is slower.
        containers: each container arm (column `arm`) over the host; above 1 is slower.
        transports: each transport (column `transport`) over direct; above 1 is slower.
        floor: the noise floor, 0.03 for 3 %; NaN without an A/A pair.
        blocks: paired blocks that the campaign asked for.
        caveats: what makes the arms unlike beside the container itself, one sentence each.
        unmeasured: {level asked for and nowhere measured: why}, such as {"docker": "no engine"}.
    """

    times: pd.DataFrame
    speedups: pd.DataFrame
    placements: pd.DataFrame
    containers: pd.DataFrame
    transports: pd.DataFrame
    floor: float
    blocks: int
    unmeasured: dict[str, str]
    caveats: tuple[str, ...] = ()


def find(campaign: Campaign) -> Findings:
    """All of a campaign's findings."""
    return from_cells(
        campaign.cells,
        blocks=campaign.experiment.launches.blocks,
        missing=unmeasured(campaign),
        caveats=(
            *caveats.recorded(campaign.launches),
            *caveats.copied(campaign.controls, CONTAINERS, HOST),
        ),
    )


def from_cells(
    cells: pd.DataFrame, *, blocks: int, missing: dict[str, str], caveats: tuple[str, ...] = ()
) -> Findings:
    """The same from launch medians alone (columns as experiments.results.COLUMNS)."""
    arms = cells[cells["arm"] != TWIN]
    kinds = [kind for kind in _levels(arms, "kind") if kind != BASELINE]
    emulated = set(arms.loc[arms["emulated"].astype(bool), "kind"])
    speedups = [
        paired_ratio(arms, "kind", BASELINE, kind).assign(kind=kind, emulated=kind in emulated)
        for kind in kinds
    ]
    placements = [
        paired_ratio(arms, factor, worse, better).assign(factor=factor)
        for factor, worse, better in (
            ("binding", "spread", "packed"),
            ("locality", "remote", "local"),
        )
    ]
    containers = [
        paired_ratio(cells, "arm", arm, HOST).assign(arm=arm)
        for arm in _levels(arms, "arm")
        if arm != HOST
    ]
    transports = [
        paired_ratio(arms, "transport", transport, OURS).assign(transport=transport)
        for transport in _levels(arms, "transport")
        if transport != OURS
    ]
    return Findings(
        times=over_launches(arms),
        speedups=_together(speedups),
        placements=_together(placements),
        containers=_together(containers),
        transports=_together(transports),
        floor=noise_floor(cells),
        blocks=blocks,
        unmeasured=missing,
        caveats=caveats,
    )


def unmeasured(campaign: Campaign) -> dict[str, str]:
    """{level asked for and nowhere measured: why}; a rank count is written "16 ranks"."""
    asked = campaign.experiment
    cells = campaign.cells
    missing = dict(
        line.split(": ", 1) for line in campaign.header.get("missing", []) if ": " in line
    )
    reasons: dict[str, str] = {}
    for launch in campaign.launches:
        for cell in launch["cells"]:
            if "skipped" in cell:
                for column in ("operation", "transport", "kind", "locality"):
                    reasons.setdefault(str(cell[column]), cell["skipped"])
    levels = {
        "environment": asked.launches.environments,
        "binding": asked.launches.bindings,
        "operation": asked.factors.operations,
        "transport": asked.factors.transports,
        "kind": asked.factors.kinds,
        "locality": asked.factors.localities,
    }
    lacking = {name: why for name, why in missing.items() if name not in set(cells["environment"])}
    for column, wanted in levels.items():
        for level in wanted:
            if level not in set(cells[column]):
                lacking.setdefault(str(level), reasons.get(str(level), UNFINISHED))
    for ranks in asked.launches.ranks:
        if ranks not in set(cells["ranks"]):
            lacking[f"{ranks} ranks"] = UNFINISHED
    return lacking


def usual(frame: pd.DataFrame, *factors: str) -> pd.DataFrame:
    """Rows at the usual level of each factor (packed, local), or at its first where that is absent.

    Args:
        factors: "binding", "locality"; both when none is named.
    """
    for factor, level in (("binding", "packed"), ("locality", "local")):
        if factor not in frame or (factors and factor not in factors):
            continue
        present = _levels(frame, factor)
        if present:
            frame = frame[frame[factor] == (level if level in present else present[0])]
    return frame


def rows(frame: pd.DataFrame) -> list[Any]:
    """The rows, each with an attribute per column."""
    return list(frame.itertuples(index=False))


def emulated(frame: pd.DataFrame) -> bool:
    """Whether any row was measured with emulated HBM."""
    return bool("emulated" in frame and frame["emulated"].astype(bool).any())


def in_order(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct values, known ones first and in the order given, then the others sorted."""
    known = list(order)
    present = set(values)
    return [v for v in known if v in present] + sorted(present - set(known))


def _levels(frame: pd.DataFrame, column: str) -> list[str]:
    return [str(value) for value in dict.fromkeys(frame[column])]


def _together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    filled = [frame for frame in frames if not frame.empty]
    if not filled:
        return frames[0] if frames else pd.DataFrame()
    return pd.concat(filled, ignore_index=True)
