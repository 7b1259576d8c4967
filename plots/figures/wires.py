"""Figure 10: how near operations come to what the links between hosts allow."""

from collections.abc import Iterator

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import at, in_order, of_first_arm, rows
from experiments.model.launch import BINDINGS
from experiments.model.quantities import bytes_text, ranks_text, ratio_text
from plots.layout import labels, marks
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Figure, sheet
from plots.layout.style import ARMS, MUTED, TRANSPORTS, Look, stroke
from plots.text.claims import Answer

NAME = "wires"
TITLE = "Time over the wire's bound"
TICKS = (0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100)
LONG = 2**20
"""Bytes from which the rate of a link counts, not its latency."""
DEALT = {"packed": "ranks in blocks", "spread": "ranks in turn"}


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count, of the first arm: a row per operation."""
    return [_drawing(part) for part in parts(of_first_arm(campaign.wires))]


def _drawing(part: Part) -> Drawing:
    frame = part.frame.rename(columns={"over": "ratio"})
    operations = in_order(frame["operation"], labels.OPERATIONS)
    bindings = in_order(frame["binding"], BINDINGS)
    page = sheet(
        f"{TITLE}, {ranks_text(part.ranks)}",
        of=frame.drop(columns="binding"),
        panel_height=1.2,
        column_heads=[DEALT.get(binding, binding) for binding in bindings],
        row_heads=[labels.operation_name(operation) for operation in operations],
        legend=marks.transport_handles(frame["transport"]),
        legend_columns=1,
        notes=["Median over launches with 95 % interval.", *marks.hollow(frame)],
        left=0.42,
    )
    low, high = marks.ratio_ends(frame[["ratio", "low", "high"]])
    ticks = [tick for tick in TICKS if low <= tick <= high]
    marks.ratio_scale(page.panels[0][0], low, high, ticks)
    for axes, operation, binding in page.by(operations, bindings):
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        here = at(frame, operation=operation, binding=binding)
        transports = in_order(here["transport"], TRANSPORTS)
        for number, transport in enumerate(transports):
            mine, line = at(here, transport=transport), stroke(transport)
            look = Look(ARMS[number % len(ARMS)], line.marker)
            marks.points(
                axes, mine, "ratio", look, line, shift=marks.dodge(number, len(transports))
            )
    marks.size_axis(page, frame["bytes"], 3 if len(bindings) > 1 else 6)
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        "Time of an operation over the least time that its bytes take on the busiest link between "
        "hosts; its rate is known. The bound, the line at 1, has no headers of the network. An "
        "allreduce over N hosts moves 2(N-1)/N of a message over each link. Ranks are on the hosts "
        "in blocks, or dealt out in turn. Both axes are logarithmic; lines connect sizes only.",
        f"Line charts of time over the least time on the links against size{part.where}: "
        + labels.ratios_in_words(
            frame.replace({"binding": DEALT}), "operation", "bytes", "transport", "binding"
        ),
        page,
    )


def answers(campaign: Campaign) -> Iterator[Answer]:
    """How near each transport comes to the bound on the first arm, of messages of LONG bytes and
    more, where there are some."""
    every = of_first_arm(campaign.wires)
    for transport in in_order(every["transport"], TRANSPORTS):
        mine = at(every, transport=transport)
        long = mine[mine["bytes"] >= LONG]
        which, shown = ("", mine) if long.empty else (f" from {bytes_text(LONG)} on", long)
        by_time = rows(shown.sort_values("over"))
        least, most = by_time[0], by_time[-1]
        places = [
            labels.in_words(cell, "operation", "bytes", "mpi", "ranks", "binding")
            for cell in (least, most)
        ]
        yield Answer(
            f"How near does {transport} come to what the links allow?",
            f"{transport} takes {ratio_text(least.over)} to {ratio_text(most.over)} times as long "
            f"as its bytes on the busiest link{which}; least in {places[0]}, most in {places[1]}. "
            f"The links carry {ratio_text(shown['carried'].min())} to "
            f"{ratio_text(shown['carried'].max())} times the least bytes.",
            points=best_flat(campaign) if transport == campaign.ours else (),
            figure=NAME,
        )


def best_flat(campaign: Campaign) -> tuple[str, ...]:
    """By operation, size, ranks and their placement: the fastest but ours, with any MPI."""
    every = of_first_arm(campaign.wires)
    flat = every[every["transport"] != campaign.ours]
    key = ["operation", "bytes", "ranks", "binding"]
    ratios = {
        (row.mpi, row.transport, row.operation, row.bytes, row.ranks, row.binding): row
        for row in rows(campaign.transports)
    }
    said = []
    for levels, mine in flat.groupby(key, sort=True, observed=True):
        best = min(rows(mine), key=lambda cell: cell.over)
        if row := ratios.get((best.mpi, best.transport, *levels)):
            said.append(
                f"{labels.in_words(best, *key)}: {best.transport} of {labels.mpi_name(best.mpi)} "
                f"is the fastest, and takes {labels.ratio_and_interval(row)} times as long as "
                f"{campaign.ours} with that MPI."
            )
    return tuple(said)


FIGURE = Figure(NAME, TITLE, draw)
