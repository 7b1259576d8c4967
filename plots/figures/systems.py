"""Figure 9: how much longer other ways take to do what one of this library's systems does."""

from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.selection import at, in_order, of_first_arm
from experiments.model.workloads import CONTENDERS, WORKLOADS
from plots.figures.panels.facets import Part, parts
from plots.figures.panels.marks import (
    dodge,
    hollow,
    points,
    ratio_ends,
    ratio_scale,
    ratio_ticks,
    series_handles,
    size_axis,
)
from plots.layout.figure_layout import Drawing, Skipped, sheet
from plots.layout.labels import (
    arm_name,
    operation_name,
    ranks_text,
    ratios_in_words,
    transport_name,
)
from plots.layout.style import MUTED, series

NAME = "systems"
TITLE = "Other ways beside"


def systems(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI and rank count, of the host or the first arm: a panel per workload."""
    return [_drawing(part, found.ours) for part in parts(of_first_arm(found.systems))]


def _drawing(part: Part, ours: str) -> Drawing:
    frame = part.frame
    workloads = in_order(frame["operation"], WORKLOADS)
    contenders = in_order(frame["transport"], CONTENDERS)
    low, high = ratio_ends(frame[["ratio", "low", "high"]])
    page = sheet(
        f"{TITLE} {transport_name(ours)}, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=1.0,
        row_heads=[operation_name(name) for name in workloads],
        legend=series_handles(map(transport_name, contenders)),
        notes=[
            f"Time over that of {ours}, {arm_name(frame['arm'].iloc[0])}: median over paired "
            "blocks with 95 % interval.",
            *hollow(frame, "blocks"),
        ],
        left=0.42,
    )
    ratio_scale(page.panels[0][0], low, high, ratio_ticks(low, high))
    for axes, workload in zip(page.flat(), workloads, strict=True):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        for number, name in enumerate(contenders):
            mine = at(frame, operation=workload, transport=name)
            shift = dodge(number, len(contenders))
            points(axes, mine, "ratio", series(number), shift=shift)
    size_axis(page, frame["bytes"], 6, "bytes")
    return Drawing(
        NAME,
        part.name,
        f"{TITLE} {ours}{part.where}",
        f"Time with the way named over time with {ours}, paired turn by turn; median over blocks "
        "with its exact 95 % interval. Both axes are logarithmic; lines connect sizes only.",
        f"Line charts of the time of other ways over that of {ours} against bytes{part.where}: "
        + ratios_in_words(frame, "operation", "bytes", "transport"),
        page,
    )
