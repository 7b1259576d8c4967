"""How much longer other ways take than this library's own: collectives and systems.

Collectives are the first figure of README and of a report's answers, to be read at a glance: their
panels are beside each other and share an axis. A system has a panel of the whole width.
"""

import pandas as pd

from experiments.analysis.findings import BASELINE, Findings
from experiments.analysis.selection import at, in_order, of_first_arm, usual
from experiments.model.workloads import CONTENDERS, WORKLOADS
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Page, Skipped, sheet
from plots.layout.labels import (
    OPERATIONS,
    arm_name,
    operation_name,
    ranks_text,
    ratios_in_words,
    transport_name,
)
from plots.layout.marks import (
    dodge,
    hollow,
    points,
    ratio_ends,
    ratio_scale,
    ratio_ticks,
    series_handles,
    size_axis,
)
from plots.layout.style import MUTED, TRANSPORTS, is_printed, series

NAME = "systems"
TITLE = "Other ways beside"
OTHERS = "others"
OTHERS_TITLE = "Times as long as"
MOST_BESIDE = 4
"""Panels beside each other on a screen; more operations have a row each, as in print."""


def systems(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI and rank count, of the host or the first arm: a panel per workload."""
    return [
        _drawing(part, NAME, f"{TITLE} {transport_name(found.ours)}", found.ours)
        for part in parts(of_first_arm(found.systems))
    ]


def others(found: Findings) -> list[Drawing | Skipped]:
    """The same of collectives: a panel per operation, beside each other where these are few."""
    frame = found.transports
    if not frame.empty:
        frame = frame[~frame["operation"].isin(WORKLOADS)]
        frame = usual(at(of_first_arm(frame), kind=BASELINE))
    return [
        _drawing(part, OTHERS, f"{OTHERS_TITLE} {transport_name(found.ours)}", found.ours)
        for part in parts(frame)
    ]


def _drawing(part: Part, topic: str, heading: str, ours: str) -> Drawing:
    frame = part.frame
    operations = in_order(frame["operation"], (*WORKLOADS, *OPERATIONS))
    heads = [operation_name(operation) for operation in operations]
    contenders = in_order(frame["transport"], (*CONTENDERS, *TRANSPORTS))
    beside = topic == OTHERS and len(operations) <= MOST_BESIDE and not is_printed()
    page = sheet(
        f"{heading}, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=1.5 if beside else 1.0,
        column_heads=heads if beside else (),
        row_heads=() if beside else heads,
        legend=series_handles(map(transport_name, contenders)),
        notes=[
            f"Time over that of {ours}, {arm_name(frame['arm'].iloc[0])}: median over paired "
            "blocks with 95 % interval.",
            *hollow(frame, "blocks"),
        ],
        left=0.42,
    )
    _draw(page, frame, operations, contenders)
    size_axis(page, frame["bytes"], 3 if beside else 6, "bytes per rank")
    return Drawing(
        topic,
        part.name,
        f"{heading}{part.where}",
        f"Time with the way named over time with {ours}, paired turn by turn; median over blocks "
        "with its exact 95 % interval. Both axes are logarithmic; lines connect sizes only.",
        f"Line charts of the time of other ways over that of {ours} against bytes{part.where}: "
        + ratios_in_words(frame, "operation", "bytes", "transport"),
        page,
    )


def _draw(page: Page, frame: pd.DataFrame, operations: list[str], contenders: list[str]) -> None:
    low, high = ratio_ends(frame[["ratio", "low", "high"]])
    ratio_scale(page.panels[0][0], low, high, ratio_ticks(low, high))
    for axes, operation in zip(page.flat(), operations, strict=True):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        for number, name in enumerate(contenders):
            mine = at(frame, operation=operation, transport=name)
            points(axes, mine, "ratio", series(number), shift=dodge(number, len(contenders)))
