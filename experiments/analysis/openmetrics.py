"""A campaign's medians and paired ratios as OpenMetrics text, which Prometheus and Grafana read.

Every family is a gauge and no sample has a timestamp. So node_exporter's textfile collector, which
reads the older text format of Prometheus, takes the file too: it skips UNIT and EOF as comments.

Source: the OpenMetrics specification 1.0, its sections "ABNF" and "Escaping".
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.statistics import FACTORS
from experiments.model.arms import HOST, TWIN, USERLAND
from experiments.model.environment import BARE_HOST
from experiments.results import recorded


class Family(NamedTuple):
    """A metric family: its name after PREFIX, which ends with its unit, and its help."""

    name: str
    column: str
    """Of the frame that it is taken from."""
    unit: str
    meaning: str


PREFIX = "hbmcomm_"
NAMES = ("campaign", "arm", "over", *FACTORS, recorded.COLUMN)
TIMES = (
    Family(
        *("median_seconds", "median_s", "seconds"),
        "Seconds per operation on the slowest rank, median over launches of the launch medians.",
    ),
    Family(
        *("median_low_seconds", "low_s", "seconds"),
        "Lower end of the 95 % interval of the median.",
    ),
    Family(
        *("median_high_seconds", "high_s", "seconds"),
        "Upper end of the 95 % interval of the median.",
    ),
    Family("p99_seconds", "p99_s", "seconds", "Seconds that 99 % of operations take at most."),
    Family("launches", "launches", "", "Launches that the median is over."),
)
"""Of Campaign.times."""
RATIOS = (
    Family(
        *("time_ratio", "ratio", "ratio"),
        "Time of the arm over that of the arm `over`, median over paired blocks.",
    ),
    Family("time_low_ratio", "low", "ratio", "Lower end of the 95 % interval of the ratio."),
    Family("time_high_ratio", "high", "ratio", "Upper end of the 95 % interval of the ratio."),
    Family(
        *("time_joint_low_ratio", "joint_low", "ratio"),
        "Lower end of a 95 % interval that holds for all cells at once.",
    ),
    Family(
        *("time_joint_high_ratio", "joint_high", "ratio"),
        "Upper end of a 95 % interval that holds for all cells at once.",
    ),
    Family(
        *("noise_floor_ratio", "floor", "ratio"),
        "Smallest effect that may be claimed, as a share of 1, from the A/A pair.",
    ),
    Family("paired_blocks", "blocks", "", "Paired blocks that the ratio is over."),
)
"""Of the ratios of arms over the reference arm, the A/A twin included, and over `userland`."""
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def openmetrics(campaign: Campaign) -> Iterator[str]:
    """The lines of the file.

    Labels are NAMES, as the columns of CSV are named; times have no `over`. An empty label is left
    out, which means the same in the format. A sample without a value is left out too: below 6
    blocks a median has no interval, and without an A/A pair no noise floor is known.
    """
    for frame, families in ((campaign.times, TIMES), (_ratios(campaign), RATIOS)):
        labels = _labels(frame.assign(campaign=campaign.name))
        for family in families if labels else ():
            yield from _lines(family, labels, frame)
    yield "# EOF\n"


def _ratios(campaign: Campaign) -> pd.DataFrame:
    twin = {"arm": TWIN, "environment": str(BARE_HOST), "profile": "", "layout": ""}
    frames = (
        campaign.containers.assign(over=HOST),
        campaign.twins.assign(**twin, over=HOST),
        campaign.isolation.assign(over=USERLAND),
    )
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()


def _labels(frame: pd.DataFrame) -> list[str]:
    """The labels of each row as text, braces included."""
    names = [name for name in NAMES if name in frame]
    rows = frame[names].astype(str).itertuples(index=False, name=None)
    pairs = (zip(names, row, strict=True) for row in rows)
    labels = (
        [f'{name}="{text.translate(_ESCAPES)}"' for name, text in row if text] for row in pairs
    )
    return ["{" + ",".join(of_row) + "}" for of_row in labels]


def _lines(family: Family, labels: Sequence[str], frame: pd.DataFrame) -> Iterator[str]:
    name = PREFIX + family.name
    yield f"# TYPE {name} gauge\n"
    if family.unit:
        yield f"# UNIT {name} {family.unit}\n"
    yield f"# HELP {name} {family.meaning}\n"
    for text, value in zip(labels, frame[family.column], strict=True):
        if not math.isnan(value):
            yield f"{name}{text} {float(value)!r}\n"
