"""Figure 3: what it costs to spread ranks over nodes, and to keep their buffers far away."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import at, in_order, of_first_arm, usual
from experiments.model.quantities import bytes_text, ranks_text
from plots.layout import marks
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Figure, say_instead, sheet
from plots.layout.labels import OPERATIONS, operation_name, ratios_in_words, short_arm
from plots.layout.style import KINDS, MUTED, stroke
from plots.tables.listing import Listing
from plots.text.claims import Answer, slowdown

NAME = "placement"
TITLE = "Placement of ranks and buffers"
FACTORS = {
    "binding": ("spread over packed", "locality", ("spread", "packed")),
    "locality": ("remote over local", "binding", ("remote", "local")),
}
"""Factor -> (what is divided by what, the factor held at its usual level, its two levels)."""
NOTE = "Ratio of times, median over paired blocks with 95 % interval; above 1× is slower."


def needs(campaign: Campaign) -> str:
    """A campaign needs two places of ranks, or of buffers."""
    if not campaign.placements.empty:
        return ""
    return "; ".join(_lacking(campaign).values()) or (
        "this campaign varies neither where ranks run (packed, spread) nor where their buffers "
        "are (local, remote)"
    )


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count: a row per operation, a column per placement factor."""
    lacking = _lacking(campaign)
    return [_drawing(part, lacking) for part in parts(of_first_arm(campaign.placements))]


def _lacking(campaign: Campaign) -> dict[str, str]:
    """Why a factor that was asked for has no ratio."""
    reasons: dict[str, str] = {}
    for factor, (words, _, levels) in FACTORS.items():
        absent = [level for level in reversed(levels) if level in campaign.unmeasured]
        if absent:
            reasons[factor] = "; ".join(
                f"{level}: {campaign.unmeasured[level]}" for level in absent
            )
        elif set(levels) <= set(campaign.cells[factor]) and not (
            len(campaign.placements) and len(at(campaign.placements, factor=factor))
        ):
            reasons[factor] = (
                f"{words}: no two blocks timed as many operations in an interval; more blocks "
                "(--blocks) give pairs"
            )
    return reasons


def _drawing(part: Part, lacking: dict[str, str]) -> Drawing:
    frame, ranks = part.frame, part.ranks
    by_factor = {
        factor: usual(at(frame, factor=factor), held) for factor, (_, held, _) in FACTORS.items()
    }
    frame = pd.concat([cells for cells in by_factor.values() if not cells.empty])
    factors = [f for f in FACTORS if not by_factor[f].empty or f in lacking]
    operations, transports = in_order(frame["operation"], OPERATIONS), set(frame["transport"])
    page = sheet(
        f"Placement, {ranks_text(ranks)}, {short_arm(frame['arm'].iloc[0])}",
        of=frame.drop(columns=["binding", "locality"], errors="ignore"),
        panel_height=1.0,
        column_heads=[FACTORS[factor][0] for factor in factors],
        row_heads=[operation_name(operation) for operation in operations],
        legend=marks.kind_handles(frame, marks=len(transports) < 2)
        + marks.transport_handles(transports),
        notes=[" ".join((NOTE, *marks.hollow(frame)))],
        left=0.42,
    )
    for axes, operation, factor in page.by(operations, factors):
        mine = at(by_factor[factor], operation=operation)
        if mine.empty:
            say_instead(axes, lacking.get(factor, "No cell of it is finished."))
        else:
            _panel(axes, mine, transports)
    marks.size_axis(page, frame["bytes"], 3 if len(factors) > 1 else 6)
    span = marks.ratio_span(frame, least=1.1, most=10.0)
    marks.ratio_scale(page.panels[0][0], 1 / span, span, marks.even_ticks(span))
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        "Time with ranks spread over all NUMA nodes over time with ranks packed into as few as "
        "hold them, and time with buffers on another node's memory over time with buffers on the "
        "rank's own; median over paired blocks with its exact 95 % interval. Above 1× the "
        "first is slower.",
        _description(frame, ranks),
        page,
    )


def _panel(axes: Axes, mine: pd.DataFrame, transports: set[str]) -> None:
    """A series for each kind and transport."""
    axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
    kinds = in_order(mine["kind"], KINDS)
    for (kind, transport), series in mine.groupby(["kind", "transport"], sort=True):
        look = marks.look_of(str(kind), str(transport), transports)
        shift = marks.dodge(kinds.index(str(kind)), len(kinds))
        marks.points(axes, series, "ratio", look, stroke(str(transport)), shift=shift)


def _description(frame: pd.DataFrame, ranks: int) -> str:
    largest = frame[frame["bytes"] == frame["bytes"].max()]
    largest = largest.replace({"factor": {name: words for name, (words, *_) in FACTORS.items()}})
    return (
        f"Line charts of placement ratios against message size, {ranks_text(ranks)}. At "
        f"{bytes_text(frame['bytes'].max())}: "
        + ratios_in_words(largest, "factor", "operation", "transport", "kind")
    )


def answers(campaign: Campaign) -> Iterator[Answer]:
    """What each placement costs that was asked for."""
    for factor, question, done in (
        ("binding", "What does it cost to spread ranks over nodes?", "spread over all nodes"),
        ("locality", "What does a distant buffer cost?", "with buffers on another node"),
    ):
        if sentence := _place(campaign, factor, done):
            yield Answer(question, sentence, figure=NAME)


def _place(campaign: Campaign, factor: str, done: str) -> str:
    """What a placement costs, or why that was not measured; "" where it was not asked for."""
    frame = at(campaign.placements, factor=factor)
    if frame.empty:
        reason = _lacking(campaign).get(factor, "")
        return f"Not measured. {reason}" if reason else ""
    return slowdown(usual(frame, FACTORS[factor][1]), campaign, done)


def _rows(campaign: Campaign) -> pd.DataFrame:
    """Where both factors vary, a row that compares one shows both levels: "spread over packed"."""
    frame = campaign.placements
    return frame.fillna({name: words for name, (words, *_) in FACTORS.items() if name in frame})


TABLE = Listing(
    "placement",
    "Placement",
    "Time spread over packed (binding), remote over local (locality).",
    _rows,
)
FIGURE = Figure(NAME, TITLE, draw, needs)
