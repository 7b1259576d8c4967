"""Figure 3: what it costs to spread ranks over nodes, and to keep their buffers far away."""

import pandas as pd
from matplotlib.axes import Axes

from experiments.analysis.findings import Findings
from experiments.analysis.selection import at, in_order, of_first_arm, usual
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Skipped, say_instead, sheet
from plots.layout.labels import (
    OPERATIONS,
    bytes_text,
    operation_name,
    ranks_text,
    ratios_in_words,
    short_arm,
)
from plots.layout.marks import (
    dodge,
    even_ticks,
    hollow,
    kind_handles,
    look_of,
    points,
    ratio_scale,
    ratio_span,
    size_axis,
    transport_handles,
)
from plots.layout.style import KINDS, MUTED, stroke

NAME = "placement"
TITLE = "Placement of ranks and buffers"
FACTORS = {
    "binding": ("spread over packed", "locality", ("spread", "packed")),
    "locality": ("remote over local", "binding", ("remote", "local")),
}
"""Factor -> (what is divided by what, the factor held at its usual level, its two levels)."""
NOTE = "Ratio of times, median over paired blocks with 95 % interval; above 1× is slower."


def placement(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI and rank count: a row per operation, a column per placement factor."""
    frame = found.placements
    lacking = {
        factor: f"{level}: {found.unmeasured[level]}"
        for factor, (_, _, levels) in FACTORS.items()
        for level in levels
        if level in found.unmeasured
    }
    if frame.empty:
        reason = "; ".join(lacking.values()) or (
            "this campaign varies neither where ranks run (packed, spread) nor where their buffers "
            "are (local, remote)"
        )
        return [Skipped(NAME, TITLE, reason)]
    return [_drawing(part, lacking) for part in parts(of_first_arm(frame))]


def _drawing(part: Part, lacking: dict[str, str]) -> Drawing:
    frame, ranks = part.frame, part.ranks
    by_factor = {
        factor: usual(at(frame, factor=factor), held) for factor, (_, held, _) in FACTORS.items()
    }
    frame = pd.concat([each for each in by_factor.values() if not each.empty])
    factors = [f for f in FACTORS if not by_factor[f].empty or f in lacking]
    operations, transports = in_order(frame["operation"], OPERATIONS), set(frame["transport"])
    page = sheet(
        f"Placement, {ranks_text(ranks)}, {short_arm(frame['arm'].iloc[0])}",
        of=frame.drop(columns=["binding", "locality"], errors="ignore"),
        panel_height=1.0,
        column_heads=[FACTORS[factor][0] for factor in factors],
        row_heads=[operation_name(operation) for operation in operations],
        legend=kind_handles(frame, marks=len(transports) < 2) + transport_handles(transports),
        notes=[" ".join((NOTE, *hollow(frame)))],
        left=0.42,
    )
    for axes, operation, factor in page.by(operations, factors):
        mine = at(by_factor[factor], operation=operation)
        if mine.empty:
            say_instead(axes, lacking.get(factor, "No cell of it is finished."))
        else:
            _panel(axes, mine, transports)
    size_axis(page, frame["bytes"], 3 if len(factors) > 1 else 6)
    span = ratio_span(frame, least=1.1, most=10.0)
    ratio_scale(page.panels[0][0], 1 / span, span, even_ticks(span))
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
        look = look_of(str(kind), str(transport), transports)
        shift = dodge(kinds.index(str(kind)), len(kinds))
        points(axes, series, "ratio", look, stroke(str(transport)), shift=shift)


def _description(frame: pd.DataFrame, ranks: int) -> str:
    largest = frame[frame["bytes"] == frame["bytes"].max()]
    largest = largest.replace({"factor": {name: words for name, (words, *_) in FACTORS.items()}})
    return (
        f"Line charts of placement ratios against message size, {ranks_text(ranks)}. At "
        f"{bytes_text(frame['bytes'].max())}: "
        + ratios_in_words(largest, "factor", "operation", "transport", "kind")
    )
