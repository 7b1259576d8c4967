"""Bus bandwidth over message size: how much of the hardware limit each arm gets."""

import pandas as pd
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from experiments.analysis.arm_order import arm_key
from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.selection import in_order, usual
from experiments.model.lower_bound import bus_bytes
from plots.figures.facets import Part, parts, some_arms
from plots.figures.marks import colour_handle, points, size_axis
from plots.layout.figure_layout import Drawing, Skipped, sheet
from plots.layout.labels import (
    OPERATIONS,
    alerts,
    arm_name,
    bandwidth_text,
    bytes_text,
    operation_name,
    ranks_text,
    setting,
)
from plots.layout.style import ARMS

NAME = "bandwidth"
TITLE = "Bus bandwidth against message size"
SHOWN = {"transport": "direct", "kind": "regular"}


def bandwidth(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per MPI and rank count: a panel per operation, a line per arm."""
    frame = found.times
    for column, level in SHOWN.items():
        frame = frame[frame[column] == level]
    frame = usual(frame)
    if frame.empty:
        return [Skipped(NAME, TITLE, "it needs times of transport direct over regular memory")]
    return [_drawing(part) for part in parts(frame)]


def rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of times with `rate`, `low` and `high` in bytes per second."""
    moved = [
        bus_bytes(operation, ranks) * size
        for operation, ranks, size in zip(
            frame["operation"], frame["ranks"], frame["bytes"], strict=True
        )
    ]
    return frame.assign(
        rate=moved / frame["median_s"], low=moved / frame["high_s"], high=moved / frame["low_s"]
    )


def _drawing(part: Part) -> Drawing:
    frame = rates(part.frame)
    operations = in_order(frame["operation"], OPERATIONS)
    arms, others = some_arms(frame["arm"], len(ARMS))
    colours = dict(zip(sorted(arms, key=arm_key), ARMS, strict=False))
    page = sheet(
        f"{TITLE}, {ranks_text(part.ranks)}",
        setting(frame),
        rows=len(operations),
        columns=1,
        panel_height=1.1,
        row_heads=[operation_name(operation) for operation in operations],
        legend=[colour_handle(colour, arm_name(arm)) for arm, colour in colours.items()],
        legend_columns=2,
        alerts=alerts(frame),
        notes=["Of medians of launch medians, with the 95 % interval.", *filter(None, [others])],
        left=0.62,
    )
    for (axes,), operation in zip(page.panels, operations, strict=True):
        for arm, colour in colours.items():
            mine = frame[(frame["operation"] == operation) & (frame["arm"] == arm)]
            points(
                axes, mine, across=("bytes", 1.0), value="rate", colour=colour, marker="o", join="-"
            )
    first = page.panels[0][0]
    size_axis(first, sorted(set(frame["bytes"])), 6)
    first.set_yscale("log")
    first.yaxis.set_major_locator(LogLocator(10, numticks=20))
    first.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bandwidth_text(value)))
    first.yaxis.set_minor_formatter(NullFormatter())
    page.panels[-1][0].set_xlabel("message size per rank")
    return Drawing(
        NAME,
        f"{part.suffix}-{part.ranks}-ranks",
        f"{TITLE}{part.title_end}, {ranks_text(part.ranks)}",
        "Bus bandwidth as nccl-tests define it, of transport direct over regular memory. "
        "Both axes are logarithmic.",
        _description(frame, part),
        page.figure,
    )


def _description(frame: pd.DataFrame, part: Part) -> str:
    best = frame.loc[frame.groupby("operation")["rate"].idxmax()]
    sentences = [
        f"{operation_name(operation)}: at most {bandwidth_text(rate)} "
        f"with {bytes_text(int(size))}, {arm_name(arm)}."
        for operation, rate, size, arm in zip(
            best["operation"], best["rate"], best["bytes"], best["arm"], strict=True
        )
    ]
    return (
        f"Line charts of bandwidth against message size{part.title_end}, "
        f"{ranks_text(part.ranks)}. " + " ".join(sentences)
    )
