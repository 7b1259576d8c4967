"""Figure 2: how much faster collectives are in HBM, against ranks and against size.

The paper's two figures are drawn as lines where the machine is a real one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from experiments.analysis.campaign import BASELINE, Campaign, absent_containers
from experiments.analysis.selection import at, emulated, in_order, of_first_arm, rows
from experiments.analysis.statistics import Verdict
from experiments.model.experiment import KINDS
from experiments.model.quantities import bytes_text, ranks_text
from plots.layout import labels, marks
from plots.layout.facets import Part, parts, some_arms
from plots.layout.figure_layout import Drawing, Figure, Page, sheet
from plots.layout.style import ALERT, ARMS, MUTED, TRANSPORTS, Look, stroke
from plots.tables.listing import Listing
from plots.tables.published import (
    BCAST_16,
    CELLS,
    MOST,
    PAPER,
    READING,
    comparable,
    largest,
    of_one_kind,
)
from plots.text import claims
from plots.text.claims import CELL, Answer

NAME = "speedup"
TITLE = "Speed-up of high-bandwidth memory"
MOST_ARMS = 3

_AT_MOST: Any = (0, (2, 1.5))
_IN_CELL: Any = (0, (1, 0.6))
_CLAIM_AT_MOST = Line2D(
    [], [], color=ALERT, linewidth=0.8, linestyle=_AT_MOST, label="paper: 487 %"
)
_CLAIM_OF_A_CELL = Line2D(
    [], [], color=ALERT, linewidth=1.4, linestyle=_IN_CELL, label="paper: 445 %, 16 ranks"
)


def needs(campaign: Campaign) -> str:
    """A campaign needs a second kind of memory."""
    if not campaign.speedups.empty:
        return ""
    asked = [f"{k}: {why}" for k, why in campaign.unmeasured.items() if k.startswith(("hbw", "hi"))]
    return "; ".join(asked) or f"it needs a kind of memory to compare with {BASELINE}"


def draw(campaign: Campaign) -> list[Drawing]:
    """Per MPI a drawing against ranks, where several counts were measured, and one per count.

    All have a row of panels per operation; arms differ by colour, transports by mark.
    """
    frame = of_one_kind(campaign)
    frame = frame[frame["arm"].isin(_arms(campaign)[0])]
    drawn = [
        _against_ranks(suffix, title_end, largest(mine), campaign)
        for suffix, title_end, mine in labels.by_mpi(frame)
        if largest(mine)["ranks"].nunique() > 1
    ]
    return drawn + [_against_size(part, campaign) for part in parts(frame)]


def _arms(campaign: Campaign) -> tuple[list[str], list[str]]:
    """The arms that are shown, and notes on the others."""
    return some_arms(of_one_kind(campaign)["arm"], MOST_ARMS)


def _against_ranks(suffix: str, title_end: str, frame: pd.DataFrame, campaign: Campaign) -> Drawing:
    size, kind = int(frame["bytes"].max()), str(frame["kind"].iloc[0])
    counts = sorted({int(count) for count in frame["ranks"]})
    places = {count: 2.0**place for place, count in enumerate(counts)}
    placed = frame.assign(place=frame["ranks"].map(places))
    cells = set(CELLS) & set(zip(frame["operation"], frame["ranks"], strict=True))
    claimed = cells if comparable(frame) else set()
    heading = f"Speed-up of {kind} over {BASELINE}, {bytes_text(size)}"
    page = _page(heading, placed, "place", campaign, [_CLAIM_OF_A_CELL] if claimed else [])
    axes = page.panels[0][0]
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(places.values()), list(map(str, counts)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(2**-0.5, 2 ** (len(counts) - 0.5))
    page.panels[-1][0].set_xlabel("ranks")
    for panel in page.flat():
        panel.grid(False, axis="x")
    panels = dict(zip(_operations(frame), page.flat(), strict=True))
    for operation, count in claimed:
        panels[operation].hlines(
            CELLS[operation, count],
            places[count] * 2**-0.4,
            places[count] * 2**0.4,
            color=ALERT,
            linewidth=1.4,
            linestyle=_IN_CELL,
            zorder=1.8,
        )
    return Drawing(
        NAME,
        f"{suffix}-ranks",
        f"{TITLE} against ranks: {kind} over {BASELINE}{title_end}",
        _caption(frame, kind),
        f"Speed-up of {kind} over {BASELINE} at {bytes_text(size)} against ranks{title_end}. "
        + _description(frame),
        page,
    )


def _against_size(part: Part, campaign: Campaign) -> Drawing:
    frame, kind = part.frame, str(part.frame["kind"].iloc[0])
    heading = f"Speed-up of {kind} over {BASELINE}, {ranks_text(part.ranks)}"
    page = _page(heading, frame, "bytes", campaign)
    marks.size_axis(page, frame["bytes"], 6)
    ends = frame[frame["bytes"].isin((frame["bytes"].min(), frame["bytes"].max()))]
    return Drawing(
        NAME,
        part.name,
        f"{TITLE} against size: {kind} over {BASELINE}{part.where}",
        _caption(frame, kind) + " Lines connect sizes only.",
        f"Speed-up of {kind} over {BASELINE} against message size{part.where}. "
        + _description(ends),
        page,
    )


def _page(
    heading: str,
    frame: pd.DataFrame,
    across: str,
    campaign: Campaign,
    claims: Sequence[Artist] = (),
) -> Page:
    """Points on a common axis of ratios, logarithmic, with all medians on it.

    Args:
        across: column of the horizontal axis; lines join bytes alone.
        claims: entries of the legend beside those of all these pages.
    """
    arms, others = _arms(campaign)
    colours = dict(zip(arms, ARMS, strict=False))
    absent = [
        f"Not measured. {arm}: {campaign.unmeasured[arm]}"
        for arm in absent_containers(campaign.unmeasured)
    ]
    papers = [MOST] if comparable(frame) else []
    low, high = marks.ratio_ends([*frame["ratio"], 1.0, *papers])  # an interval has no say
    notes = [
        "Median over paired blocks with 95 % interval; above 1× HBM is faster.",
        *marks.hollow(frame, "blocks"),
    ]
    if (frame["low"] < low).any() or (frame["high"] > high).any():
        notes.append("Intervals that leave the axis are cut at its edge.")
    page = sheet(
        heading,
        of=frame,
        panel_height=1.0,
        row_heads=[labels.operation_name(operation) for operation in _operations(frame)],
        legend=[
            *(
                marks.colour_handle(colour, labels.short_arm(arm))
                for arm, colour in colours.items()
            ),
            *marks.transport_handles(frame["transport"]),
            *([_CLAIM_AT_MOST] if papers else []),
            *claims,
        ],
        alerts=absent,
        notes=[*notes, *others],
        left=0.42,
    )
    marks.ratio_scale(page.panels[0][0], low, high, marks.ratio_ticks(low, high))
    series = [(arm, name) for arm in arms for name in in_order(frame["transport"], TRANSPORTS)]
    for axes, operation in zip(page.flat(), _operations(frame), strict=True):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        for ratio in papers:
            axes.axhline(ratio, color=ALERT, linewidth=0.8, linestyle=_AT_MOST, zorder=1.4)
        for number, (arm, transport) in enumerate(series):
            own = at(frame, operation=operation, arm=arm, transport=transport)
            joined, line = across == "bytes", stroke(transport)
            shift = marks.dodge(number, len(series)) ** (1.0 if joined else 2.2)
            look = Look(colours[arm], line.marker)
            marks.points(axes, own, "ratio", look, line, across=across, shift=shift, joined=joined)
    return page


def _operations(frame: pd.DataFrame) -> list[str]:
    return in_order(frame["operation"], labels.OPERATIONS)


def _caption(frame: pd.DataFrame, kind: str) -> str:
    papers = (
        f" The dashed lines are the paper's figures ({PAPER}, Knights Landing: "
        f"{100 * BCAST_16:.0f} % for Bcast at 16 ranks, {100 * MOST:.0f} % at most), where "
        f"{READING}; they are its claim, not a measurement of this campaign."
    )
    return (
        f"Time with buffers in {BASELINE} memory over time in {kind}, paired within a block; "
        "median over blocks with its 95 % interval; 1× is no difference. The axis is logarithmic "
        f"and holds every median.{papers * comparable(frame)}"
    )


def _description(frame: pd.DataFrame) -> str:
    claim = " The paper claims 4.45 for Bcast at 16 ranks and 4.87 at most."
    every = labels.ratios_in_words(frame, "operation", "ranks", "bytes", "transport", "arm")
    return every + claim * comparable(frame)


def answers(campaign: Campaign) -> Iterator[Answer]:
    """How much faster other kinds of memory are, where the campaign asked for any."""
    if sentence := _memory(campaign):
        question = "How much faster are collectives in high-bandwidth memory?"
        yield Answer(question, sentence, figure=NAME)


def _memory(campaign: Campaign) -> str:
    """How much faster other kinds of memory are; "" where the campaign asked for none."""
    frame = of_first_arm(of_one_kind(campaign))
    if frame.empty:
        reasons = [
            f"{kind}: {campaign.unmeasured[kind]}" for kind in KINDS if kind in campaign.unmeasured
        ]
        return f"Not measured. {'; '.join(reasons)}" if reasons else ""
    kind = frame["kind"].iloc[0]
    if emulated(frame):
        return (
            f"Not answered by this machine: {kind} was emulated on ordinary memory. The path "
            f"works; its ratios to {BASELINE} memory, {claims.span(frame)} over {len(frame)} "
            "cells, show the spread of the measurement and nothing about high-bandwidth memory."
        )
    if (frame["verdict"] == Verdict.TOO_FEW).all():
        return (
            f"{claims.span(frame)} times as fast in {kind} as in {BASELINE} memory from cell to "
            f"cell, {claims.few(frame)}."
        )
    faster = frame[(frame["verdict"] == Verdict.DIFFERS) & (frame["ratio"] > 1)]
    if faster.empty:
        return (
            f"No speed-up in any of {len(frame)} cells: in {BASELINE} memory they take "
            f"{claims.bound(frame)} more time than in {kind}." + claims.ending(frame, campaign)
        )
    best = max(rows(faster), key=lambda cell: cell.ratio)
    return (
        f"Up to {claims.claimed(best)} as fast in {kind} as in {BASELINE} memory "
        f"({labels.in_words(best, *CELL, 'mpi', 'arm')}); faster beyond the noise floor in "
        f"{len(faster)} of {len(frame)} cells. The paper claims 445 %, read as 4.45 times, for "
        "Bcast at 16 ranks, and 487 % at most." + claims.ending(frame, campaign)
    )


TABLE = Listing(
    "speedup",
    "Speed-up of high-bandwidth memory",
    f"Time in {BASELINE} memory over time in the kind named.",
    "speedups",
)
FIGURE = Figure(NAME, TITLE, draw, needs)
