"""Figure 10: how near operations come to what the links between hosts allow."""

from experiments.analysis.findings import Findings
from experiments.analysis.selection import at, in_order, of_first_arm
from experiments.model.experiment import BINDINGS
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Skipped, sheet
from plots.layout.labels import OPERATIONS, operation_name, ranks_text, ratios_in_words
from plots.layout.marks import (
    dodge,
    hollow,
    points,
    ratio_ends,
    ratio_scale,
    size_axis,
    transport_handles,
)
from plots.layout.style import ARMS, MUTED, TRANSPORTS, Look, stroke

NAME = "wires"
TITLE = "Time over the wire's bound"
TICKS = (0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
DEALT = {"packed": "ranks in blocks", "spread": "ranks in turn"}


def wires(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI and rank count, of the first arm: a row per operation."""
    return [_drawing(part) for part in parts(of_first_arm(found.wires))]


def _drawing(part: Part) -> Drawing:
    frame = part.frame.rename(columns={"over": "ratio"})
    operations = in_order(frame["operation"], OPERATIONS)
    bindings = in_order(frame["binding"], BINDINGS)
    page = sheet(
        f"{TITLE}, {ranks_text(part.ranks)}",
        of=frame.drop(columns="binding"),
        panel_height=1.2,
        column_heads=[DEALT.get(binding, binding) for binding in bindings],
        row_heads=[operation_name(operation) for operation in operations],
        legend=transport_handles(frame["transport"]),
        legend_columns=1,
        notes=["Median over launches with 95 % interval.", *hollow(frame)],
        left=0.42,
    )
    low, high = ratio_ends(frame[["ratio", "low", "high"]])
    ticks = [tick for tick in TICKS if low <= tick <= high]
    ratio_scale(page.panels[0][0], low, high, ticks)
    for axes, operation, binding in page.by(operations, bindings):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        here = at(frame, operation=operation, binding=binding)
        transports = in_order(here["transport"], TRANSPORTS)
        for number, transport in enumerate(transports):
            mine, line = at(here, transport=transport), stroke(transport)
            look = Look(ARMS[number % len(ARMS)], line.marker)
            points(axes, mine, "ratio", look, line, shift=dodge(number, len(transports)))
    size_axis(page, frame["bytes"], 3 if len(bindings) > 1 else 6)
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        "Time of an operation over the least time that its bytes take on the busiest link between "
        "hosts; its rate is known. The bound, the line at 1, has no headers of the network. An "
        "allreduce over N hosts moves 2(N-1)/N of a message over each link. Ranks are on the hosts "
        "in blocks, or dealt out in turn. Both axes are logarithmic; lines connect sizes only.",
        f"Line charts of time over the least time on the links against size{part.where}: "
        + ratios_in_words(
            frame.replace({"binding": DEALT}), "operation", "bytes", "transport", "binding"
        ),
        page,
    )
