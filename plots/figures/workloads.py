"""Figure 8: what a step of training or decoding computes, and how long it communicates."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from experiments.analysis.campaign import Campaign
from experiments.analysis.selection import at, in_order, of_first_arm, places, rows
from experiments.model.arms import arm_key
from experiments.model.quantities import bytes_text, percent_text, ranks_text, seconds_text
from experiments.model.workloads import WORKLOADS
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Figure, sheet
from plots.layout.labels import OPERATIONS, arm_name, operation_name, short_arm
from plots.layout.style import BAND, INK, TRANSPORTS, party
from plots.tables.listing import STEP_TIMES, Listing
from plots.text.claims import Answer

NAME = "workloads"
TITLE = "Computation and communication"
BAR = 0.17  # inches from bar to bar
LEFT = 1.45  # inches for the names of bars


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count: panels by step and size, bars by transport and arm."""
    return [_drawing(part) for part in parts(campaign.workloads)]


def _drawing(part: Part) -> Drawing:
    frame = part.frame.sort_values(
        ["transport", "arm"],
        key=lambda names: names.map(arm_key) if names.name == "arm" else places(names, TRANSPORTS),
    )
    panels = [
        (operation, size)
        for operation in in_order(frame["operation"], WORKLOADS)
        for size in sorted(set(at(frame, operation=operation)["bytes"]))
    ]
    transports = in_order(frame["transport"], TRANSPORTS)
    bars = len(frame[["transport", "arm"]].drop_duplicates())
    page = sheet(
        f"{TITLE}, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=BAR * bars + 0.1,
        row_heads=[f"{operation_name(name)}, {bytes_text(size)}" for name, size in panels],
        legend=[
            Patch(color=BAND, label="computation"),
            *(Patch(color=party(name).colour, label=name) for name in transports),
        ],
        legend_columns=3,
        notes=["At each bar: the time of a step, and the share of it that is communication."],
        left=LEFT,
        below=0.05,
        shared=False,
    )
    for axes, (operation, size) in zip(page.flat(), panels, strict=True):
        _panel(axes, at(frame, operation=operation, bytes=size))
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        "Time of one step, the maximum over ranks, median over launches of the launch's median, "
        "with its 95 % interval. Grey: the same step without communication, which took turns "
        "with it; the rest is what communication adds: moving the data, without what overlaps "
        "with computation, and the work of DDP or FSDP2 for it.",
        _description(frame, part),
        page,
    )


def _panel(axes: Axes, mine: pd.DataFrame) -> None:
    """Bars from top to bottom in the frame's order."""
    places = range(len(mine))
    least = mine[["median_s", "bound_s"]].min(axis=1)
    axes.barh(places, least, height=0.7, color=BAND)
    colours = [party(name).colour for name in mine["transport"]]
    axes.barh(places, mine["median_s"] - least, left=least, height=0.7, color=colours)
    axes.hlines(places, mine["low_s"], mine["high_s"], color=INK, linewidth=0.8)
    ends = mine[["median_s", "high_s"]].max(axis=1)
    widest = float(ends.max())
    for place, end, cell in zip(places, ends, rows(mine), strict=True):
        words = f"{seconds_text(cell.median_s)}, {percent_text(cell.share, 0)}"
        axes.text(end + widest * 0.015, place, words, va="center")
    axes.set_xlim(0, widest * 1.5)
    axes.set_ylim(len(mine) - 0.4, -0.6)
    axes.set_yticks(
        list(places), [f"{cell.transport}, {short_arm(cell.arm)}" for cell in rows(mine)]
    )
    axes.tick_params(length=0)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.grid(visible=False)


def _description(frame: pd.DataFrame, part: Part) -> str:
    lines = [
        f"{operation_name(cell.operation)}, {bytes_text(cell.bytes)}, {cell.transport}, "
        f"{cell.arm}: {seconds_text(cell.median_s)}, {percent_text(cell.share, 0)} communication."
        for cell in rows(frame)
    ]
    return f"Bar charts of the time of a step{part.where}: {' '.join(lines)}"


def answers(campaign: Campaign) -> Iterator[Answer]:
    """How much of each step is communication, on the host or the first arm there is."""
    every = of_first_arm(campaign.workloads)
    for operation in in_order(every["operation"], OPERATIONS):
        steps = at(every, operation=operation)
        arm = arm_name(steps["arm"].iloc[0])
        by_transport = steps.groupby("transport")["share"]
        least, most = by_transport.min(), by_transport.max()
        shares = [
            f"{percent_text(least[transport], 0)} to {percent_text(most[transport], 0)} of its "
            f"time on {transport}"
            for transport in in_order(steps["transport"], TRANSPORTS)
        ]
        question = f"How much of a {operation_name(operation)} is communication?"
        sentence = f"{arm.capitalize()}, from size to size: {', '.join(shares)}."
        yield Answer(question, sentence, figure=NAME)


TABLE = Listing(
    "workloads",
    "Computation and communication",
    "Time of a step; of the same step without communication, which took turns with it; and "
    "the share of the step that is communication. p95: median over launches too. n: the steps "
    "of all launches.",
    "workloads",
    STEP_TIMES,
)
FIGURE = Figure(NAME, TITLE, draw)
