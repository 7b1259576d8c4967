"""How much longer other ways take than this library's own: collectives and systems.

Collectives are the first figure of README and of a report's answers, to be read at a glance: their
panels are beside each other and share an axis. A system has a panel of the whole width.
"""

from collections.abc import Iterator

import pandas as pd

from experiments.analysis.campaign import BASELINE, OURS, Campaign
from experiments.analysis.reading import OVER_PRIVATE
from experiments.analysis.selection import at, in_order, of_first_arm, usual
from experiments.model.contender_names import GLOO, TORCH
from experiments.model.quantities import ranks_text
from experiments.model.workloads import CONTENDERS, WORKLOADS
from plots.figures.times import NAME as TIMES
from plots.layout import labels, marks
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Figure, Page, sheet
from plots.layout.style import MUTED, TRANSPORTS, is_printed, series
from plots.tables.listing import Listing
from plots.text.claims import Answer, absent, slowdown

NAME = "systems"
TITLE = "Other ways beside"
OTHERS = "others"
OTHERS_TITLE = "Times as long as"
MOST_BESIDE = 4
"""Panels beside each other on a screen; more operations have a row each, as in print."""


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count, of the host or the first arm: a panel per workload."""
    return [
        _drawing(part, NAME, f"{TITLE} {labels.transport_name(campaign.ours)}", campaign.ours)
        for part in parts(of_first_arm(campaign.systems))
    ]


def draw_others(campaign: Campaign) -> list[Drawing]:
    """The same of collectives: a panel per operation, beside each other where these are few."""
    frame = campaign.transports
    if not frame.empty:
        frame = frame[~frame["operation"].isin(WORKLOADS)]
        frame = usual(at(of_first_arm(frame), kind=BASELINE))
    return [
        _drawing(
            part, OTHERS, f"{OTHERS_TITLE} {labels.transport_name(campaign.ours)}", campaign.ours
        )
        for part in parts(frame)
    ]


def _drawing(part: Part, topic: str, heading: str, ours: str) -> Drawing:
    frame = part.frame
    operations = in_order(frame["operation"], (*WORKLOADS, *labels.OPERATIONS))
    heads = [labels.operation_name(operation) for operation in operations]
    contenders = in_order(frame["transport"], (*CONTENDERS, *TRANSPORTS))
    beside = topic == OTHERS and len(operations) <= MOST_BESIDE and not is_printed()
    page = sheet(
        f"{heading}, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=1.5 if beside else 1.0,
        column_heads=heads if beside else (),
        row_heads=() if beside else heads,
        legend=marks.series_handles(map(labels.transport_name, contenders)),
        notes=[
            f"Time over that of {ours}, {labels.arm_name(frame['arm'].iloc[0])}: median over "
            "paired blocks with 95 % interval.",
            *marks.hollow(frame, "blocks"),
        ],
        left=0.42,
    )
    _draw(page, frame, operations, contenders)
    marks.size_axis(page, frame["bytes"], 3 if beside else 6, "bytes per rank")
    return Drawing(
        topic,
        part.name,
        f"{heading}{part.where}",
        f"Time with the way named over time with {ours}, paired turn by turn; median over blocks "
        "with its exact 95 % interval. Both axes are logarithmic; lines connect sizes only.",
        f"Line charts of the time of other ways over that of {ours} against bytes{part.where}: "
        + labels.ratios_in_words(frame, "operation", "bytes", "transport"),
        page,
    )


def _draw(page: Page, frame: pd.DataFrame, operations: list[str], contenders: list[str]) -> None:
    low, high = marks.ratio_ends(frame[["ratio", "low", "high"]])
    marks.ratio_scale(page.panels[0][0], low, high, marks.ratio_ticks(low, high))
    for axes, operation in zip(page.flat(), operations, strict=True):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        for number, name in enumerate(contenders):
            mine = at(frame, operation=operation, transport=name)
            marks.points(
                axes, mine, "ratio", series(number), shift=marks.dodge(number, len(contenders))
            )


def answers(campaign: Campaign) -> Iterator[Answer]:
    """How much slower each other transport is than ours, and gloo than our backend of torch."""
    topic = OTHERS if campaign.systems.empty else NAME
    for transport in in_order(campaign.transports.get("transport", []), (*TRANSPORTS, *CONTENDERS)):
        question = f"How much slower than {campaign.ours} is {transport}?"
        yield Answer(question, _transport(campaign, transport), figure=topic)
    gloo = campaign.beside(TORCH, [GLOO] if campaign.ours != TORCH else [])
    if not gloo.empty:
        question = f"How much slower than {TORCH} is {GLOO}?"
        done = f"with {GLOO} as with {TORCH}, over the same buffers"
        yield Answer(question, slowdown(usual(gloo), campaign, done), figure=TIMES)
    if OURS in campaign.unmeasured:
        yield absent(f"How fast is {OURS}?", OURS, campaign)


def _transport(campaign: Campaign, transport: str) -> str:
    frame = usual(at(campaign.transports, transport=transport))
    apart = transport.endswith(OVER_PRIVATE) or not campaign.systems.empty
    shared = "" if apart else ", over the same buffers"
    return slowdown(frame, campaign, f"with {transport} as with {campaign.ours}{shared}")


TABLE = Listing(
    "transport",
    "Transports",
    "Time with the transport named over time with {ours}, over the same buffers in the same "
    "launch.",
    "transports",
)
FIGURE = Figure(NAME, TITLE, draw)
OF_COLLECTIVES = Figure(OTHERS, OTHERS_TITLE, draw_others)
