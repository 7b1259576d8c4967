"""Figure 2: how much faster collectives are in HBM, against ranks and against size.

The paper's two figures are drawn as lines where the machine is a real one.
"""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.analysis.findings.campaign import BASELINE, Findings, absent_containers
from experiments.analysis.findings.selection import in_order, rows
from plots.figures.panels.facets import parts, some_arms
from plots.figures.panels.marks import (
    colour_handle,
    dodge,
    hollow,
    points,
    ratio_ends,
    ratio_scale,
    ratio_ticks,
    size_axis,
    transport_handles,
)
from plots.layout.figure_layout import Drawing, Sheet, Skipped, sheet
from plots.layout.labels import (
    MPIS,
    OPERATIONS,
    alerts,
    arm_name,
    bytes_text,
    mpi_name,
    operation_name,
    ranks_text,
    ratio_and_interval,
    setting,
    short_arm,
)
from plots.layout.style import ALERT, ARMS, MUTED, TRANSPORTS, Look, stroke
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

NAME = "speedup"
TITLE = "Speed-up of high-bandwidth memory"
MOST_ARMS = 3

_AT_MOST: Any = (0, (2, 1.5))
_IN_CELL: Any = (0, (1, 0.6))
_CLAIM_OF_A_CELL = Line2D(
    [], [], color=ALERT, linewidth=1.4, linestyle=_IN_CELL, label="paper: 445 %, 16 ranks"
)


def speedup(found: Findings) -> list[Drawing | Skipped]:
    """Per MPI a drawing against ranks, where several counts were measured, and one per count.

    All have a row of panels per operation; arms differ by colour, transports by mark.
    """
    frame = of_one_kind(found)
    if frame.empty:
        reasons = [
            f"{k}: {why}" for k, why in found.unmeasured.items() if k.startswith(("hbw", "hi"))
        ]
        reason = "; ".join(reasons) or f"it needs a kind of memory to compare with {BASELINE}"
        return [Skipped(NAME, TITLE, reason)]
    arms, others = some_arms(frame["arm"], MOST_ARMS)
    frame = frame[frame["arm"].isin(arms)]
    at_largest = largest(frame)
    mpis = in_order(frame["mpi"], MPIS)
    drawn: list[Drawing | Skipped] = []
    for mpi in mpis:
        mine = at_largest[at_largest["mpi"] == mpi]
        if mine["ranks"].nunique() > 1:
            drawn.append(_against_ranks(mine, mpi if len(mpis) > 1 else "", arms, others, found))
    return drawn + [
        _against_size(part.frame, part.suffix, part.title_end, arms, others, found)
        for part in parts(frame)
    ]


def _against_ranks(
    frame: pd.DataFrame, mpi: str, arms: list[str], others: str, found: Findings
) -> Drawing:
    """Args: mpi, to be named where there are several."""
    size, kind = int(frame["bytes"].max()), str(frame["kind"].iloc[0])
    counts = sorted({int(count) for count in frame["ranks"]})
    placed = frame.assign(place=[2.0 ** counts.index(int(n)) for n in frame["ranks"]])
    heading = f"Speed-up of {kind} over {BASELINE}, {bytes_text(size)}"
    cells = set(CELLS) & set(zip(frame["operation"], frame["ranks"], strict=True))
    claims = [_CLAIM_OF_A_CELL] if comparable(frame) and cells else []
    page = _page(heading, frame, arms, others, found, claims)
    _fill(page, placed, arms, "place", join=False)
    axes = page.panels[0][0]
    axes.set_xscale("log", base=2)
    axes.set_xlim(2**-0.5, 2 ** (len(counts) - 0.5))
    axes.xaxis.set_major_locator(FixedLocator([2.0**place for place in range(len(counts))]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda place, _: str(counts[round(math.log2(place))]))
    )
    page.panels[-1][0].set_xlabel("ranks")
    for panel in page.flat():
        panel.grid(False, axis="x")
    panels = dict(zip(_operations(frame), page.flat(), strict=True))
    for operation, count in cells if claims else ():
        middle = 2.0 ** counts.index(count)
        panels[operation].hlines(
            CELLS[operation, count],
            middle * 2**-0.4,
            middle * 2**0.4,
            color=ALERT,
            linewidth=1.4,
            linestyle=_IN_CELL,
            zorder=1.8,
        )
    title_end = f", {mpi_name(mpi)}" if mpi else ""
    return Drawing(
        NAME,
        f"{f'-{mpi}' if mpi else ''}-ranks",
        f"{TITLE} against ranks: {kind} over {BASELINE}{title_end}",
        _caption(frame, kind),
        f"Speed-up of {kind} over {BASELINE} at {bytes_text(size)} against ranks{title_end}. "
        + _description(frame),
        page.figure,
    )


def _against_size(
    frame: pd.DataFrame, suffix: str, title_end: str, arms: list[str], others: str, found: Findings
) -> Drawing:
    ranks, kind = int(frame["ranks"].iloc[0]), str(frame["kind"].iloc[0])
    with_ranks = ranks_text(ranks)
    page = _page(f"Speed-up of {kind} over {BASELINE}, {with_ranks}", frame, arms, others, found)
    _fill(page, frame, arms, "bytes", join=True)
    size_axis(page, frame["bytes"], 6)
    ends = frame[frame["bytes"].isin((frame["bytes"].min(), frame["bytes"].max()))]
    return Drawing(
        NAME,
        f"{suffix}-{ranks}-ranks",
        f"{TITLE} against size: {kind} over {BASELINE}{title_end}, {with_ranks}",
        _caption(frame, kind) + " Lines connect sizes only.",
        f"Speed-up of {kind} over {BASELINE} against message size{title_end}, {with_ranks}. "
        + _description(ends),
        page.figure,
    )


def _page(
    heading: str,
    frame: pd.DataFrame,
    arms: list[str],
    others: str,
    found: Findings,
    claims: Sequence[Artist] = (),
) -> Sheet:
    """Empty panels on a common axis of ratios, logarithmic, with all medians on it."""
    absent = [
        f"Not measured. {arm}: {found.unmeasured[arm]}"
        for arm in absent_containers(found.unmeasured)
    ]
    low, high = _limits(frame)
    notes = [
        "Median over paired blocks with 95 % interval; above 1× HBM is faster.",
        *hollow(frame, "blocks"),
    ]
    if (frame["low"] < low).any() or (frame["high"] > high).any():
        notes.append("Intervals that leave the axis are cut at its edge.")
    operations = _operations(frame)
    page = sheet(
        heading,
        setting(frame),
        rows=len(operations),
        columns=1,
        panel_height=1.0,
        row_heads=[operation_name(operation) for operation in operations],
        legend=[*_legend(frame, arms), *claims],
        legend_columns=2,
        alerts=[*alerts(frame), *absent],
        notes=[*notes, *([others] if others else [])],
        left=0.42,
    )
    ratio_scale(page.panels[0][0], low, high, ratio_ticks(low, high))
    for panel in page.flat():
        panel.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
        if comparable(frame):
            panel.axhline(MOST, color=ALERT, linewidth=0.8, linestyle=_AT_MOST, zorder=1.4)
    return page


def _limits(frame: pd.DataFrame) -> tuple[float, float]:
    """Ends of the axis: around 1×, every median and the paper's figures; an interval has no say."""
    claims = [MOST] if comparable(frame) else []
    return ratio_ends([*frame["ratio"], 1.0, *claims])


def _legend(frame: pd.DataFrame, arms: list[str]) -> list[Artist]:
    shown = [colour_handle(colour, short_arm(arm)) for arm, colour in _colours(arms).items()]
    shown += transport_handles(frame["transport"])
    if comparable(frame):
        shown.append(
            Line2D([], [], color=ALERT, linewidth=0.8, linestyle=_AT_MOST, label="paper: 487 %")
        )
    return shown


def _colours(arms: list[str]) -> dict[str, str]:
    return dict(zip(arms, ARMS, strict=False))


def _operations(frame: pd.DataFrame) -> list[str]:
    return in_order(frame["operation"], OPERATIONS)


def _fill(page: Sheet, frame: pd.DataFrame, arms: list[str], across: str, join: bool) -> None:
    """The points of every panel; series side by side, so that none hides another."""
    transports = in_order(frame["transport"], TRANSPORTS)
    series = [(arm, transport) for arm in arms for transport in transports]
    for axes, operation in zip(page.flat(), _operations(frame), strict=True):
        for number, (arm, transport) in enumerate(series):
            _series(
                axes,
                frame[
                    (frame["operation"] == operation)
                    & (frame["arm"] == arm)
                    & (frame["transport"] == transport)
                ],
                (across, dodge(number, len(series)) ** (1.0 if join else 2.2)),
                _colours(arms)[arm],
                transport,
                join,
            )


def _series(
    axes: Axes,
    frame: pd.DataFrame,
    across: tuple[str, float],
    colour: str,
    transport: str,
    join: bool,
) -> None:
    if not frame.empty:
        points(
            axes,
            frame,
            across=across,
            value="ratio",
            look=Look(colour, stroke(transport).marker),
            join=stroke(transport).dashes if join else None,
            weight=stroke(transport).weight,
        )


def _caption(frame: pd.DataFrame, kind: str) -> str:
    return (
        f"Time with buffers in {BASELINE} memory over time in {kind}, paired within a block; "
        "median over blocks with its 95 % interval; 1× is no difference. The axis is logarithmic "
        "and holds every median."
    ) + (
        f" The dashed lines are the paper's figures ({PAPER}, Knights Landing: "
        f"{100 * BCAST_16:.0f} % for Bcast at 16 ranks, {100 * MOST:.0f} % at most), where "
        f"{READING}; they are its claim, not a measurement of this campaign."
        if comparable(frame)
        else ""
    )


def _description(frame: pd.DataFrame) -> str:
    sentences = [
        f"{operation_name(cell.operation)}, {ranks_text(cell.ranks)}, {bytes_text(int(cell.bytes))}"
        f", {cell.transport}, {arm_name(cell.arm)}: "
        f"{ratio_and_interval(cell.ratio, cell.low, cell.high)}."
        for cell in rows(frame)
    ]
    claim = (
        " The paper claims 4.45 for Bcast at 16 ranks and 4.87 at most."
        if comparable(frame)
        else ""
    )
    return " ".join(sentences) + claim
