"""Figure 5: where a container's cost comes from: a column per step, a row per operation.

experiments.analysis.container_steps defines the steps; every ratio is of a step's arm over the arm
before it.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from experiments.analysis.campaign import Campaign
from experiments.analysis.container_steps import FILES, Family, family
from experiments.analysis.selection import at, in_order, rows, usual
from experiments.model.arms import arm_key, named
from experiments.model.quantities import percent_text, ranks_text, ratio_text
from plots.layout import labels
from plots.layout.figure_layout import Drawing, Figure, sheet
from plots.layout.marks import even_ticks, hollow, mark_handle, marks, ratio_axis
from plots.layout.style import BAND, MUTED, PARTIES, Look
from plots.tables.listing import GROUPS, OVER_BLOCKS, WIDEST, Listing
from plots.text import causes, claims
from plots.text.claims import Answer

NAME = "chain"
TITLE = "Where a container's cost comes from"
MOST = 4.0
"""The axis ends at this ratio at the latest; what is beyond is written there."""
_ROW = 0.17  # inches
_SHOWN = {"direct": PARTIES["direct"], "mpi": PARTIES["openmpi"]}
"""Transports and their looks; pickle's cost is Python's."""


def needs(campaign: Campaign) -> str:
    """A campaign needs userland and a container."""
    if campaign.whole_steps.empty:
        return "it needs the arm userland, the image's files on the host"
    contained = any(named(arm).profile for arm in _shown(campaign.whole_steps)["above"])
    return "" if contained else "this campaign has no container beside userland"


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    return usual(frame[frame["transport"].isin(_SHOWN)])


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per engine, layout and rank count."""
    whole, cells = _shown(campaign.whole_steps), _shown(campaign.steps)
    above = sorted(set(whole["above"]), key=arm_key)
    families = list(dict.fromkeys(family(arm) for arm in above if named(arm).profile))
    ranks = sorted(set(whole["ranks"]))
    return [
        _drawing(
            campaign,
            f"-{own[0].in_names}-{own[1]}" * (len(families) > 1)
            + f"-{count}-ranks" * (len(ranks) > 1),
            *(frame[(frame["ranks"] == count) & _belongs(frame, own)] for frame in (whole, cells)),
        )
        for own in families
        for count in ranks
    ]


def _drawing(campaign: Campaign, suffix: str, whole: pd.DataFrame, cells: pd.DataFrame) -> Drawing:
    columns = list(dict.fromkeys(zip(whole["step"], whole["above"], strict=True)))
    columns.sort(key=lambda column: (list(labels.STEPS).index(column[0]), arm_key(column[1])))
    lines = _lines(whole)
    ends = _ends(whole, cells)
    lost = causes.short(campaign.data_paths.losses)
    page = sheet(
        f"{TITLE}, {ranks_text(int(whole['ranks'].iloc[0]))}",
        of=whole,
        panel_height=_ROW * len(lines) + 0.1,
        column_heads=[_head(above) for _, above in columns],
        legend=_legend(whole),
        notes=[
            "Time in the arm named over time in the arm before it in the chain: in each block the "
            "median over all sizes, then over blocks, with its exact 95 % interval. Small dots: "
            "each size.",
            *hollow(whole),
        ],
        left=1.12,
    )
    first = page.panels[0][0]
    first.set_xscale("log")
    first.set_xlim(*ends)
    first.set_yticks(range(len(lines)), list(lines.values()))
    first.set_ylim(len(lines) - 0.4, -0.6)
    first.tick_params(axis="y", length=0)
    ratio_axis(first.xaxis, even_ticks(max(ends[1], 1 / ends[0])))
    for axes, (step, above) in zip(page.panels[0], columns, strict=True):
        mine, small = (at(frame, step=step, above=above) for frame in (whole, cells))
        _panel(axes, mine, small, list(lines), ends)
    page.panels[0][len(columns) // 2].set_xlabel("times as long as the step before")
    return Drawing(
        NAME,
        suffix,
        TITLE + (f": {labels.arm_name(columns[-1][1])}" if suffix else ""),
        " ".join(f"{_head(above).capitalize()}: {labels.STEPS[step]}." for step, above in columns)
        + (f" {lost}" if lost else ""),
        _description(whole, columns),
        page,
    )


def _belongs(frame: pd.DataFrame, shown: Family) -> "pd.Series[bool]":
    """Rows of the first step, which all share, and of this engine and layout."""
    own = [family(arm) == shown for arm in frame["above"]]
    return (frame["step"] == FILES) | pd.Series(own, index=frame.index)


def _lines(whole: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """{(MPI, operation, kind): label} of every row of a panel, in reading order."""
    mpis, kinds = in_order(whole["mpi"], labels.MPIS), list(dict.fromkeys(whole["kind"]))
    return {
        (mpi, operation, kind): f"{labels.mpi_name(mpi)}, " * (len(mpis) > 1)
        + labels.operation_name(operation)
        + f", {kind}" * (len(kinds) > 1)
        for mpi, operation, kind in product(
            mpis, in_order(whole["operation"], labels.OPERATIONS), kinds
        )
    }


def _head(above: str) -> str:
    """The arm that a step leads to, in a word."""
    return named(above).profile or above


def _panel(
    axes: Axes,
    whole: pd.DataFrame,
    cells: pd.DataFrame,
    lines: list[tuple[str, str, str]],
    ends: tuple[float, float],
) -> None:
    floor = float(whole["floor"].max())
    if math.isfinite(floor):
        axes.axvspan(1 - floor, 1 + floor, color=BAND, lw=0, zorder=0.5)
    axes.axvline(1, color=MUTED, linewidth=0.6, zorder=1)
    for offset, (transport, look) in zip((-0.18, 0.18), _SHOWN.items(), strict=True):
        for frame, small in ((cells, True), (whole, False)):
            for cell in rows(at(frame, transport=transport)):
                y = lines.index((cell.mpi, cell.operation, cell.kind)) + offset
                _mark(axes, cell, y, look, ends, small)


def _ends(whole: pd.DataFrame, cells: pd.DataFrame) -> tuple[float, float]:
    """Where the axis begins and ends: it holds every ratio, and intervals up to MOST."""
    drawn = [*whole["ratio"], *cells["ratio"], *whole["low"].dropna(), *whole["high"].dropna()]
    return max(1 / MOST, min(0.95, *drawn) / 1.03), min(MOST, max(1.05, *drawn) * 1.03)


def _mark(
    axes: Axes, cell: Any, y: float, look: Look, ends: tuple[float, float], small: bool
) -> None:
    colour, x = look.colour, min(max(cell.ratio, ends[0]), ends[1])
    if small:
        axes.plot([x], [y], ".", color=colour, markersize=1.6, alpha=0.55, zorder=2)
        return
    known = math.isfinite(cell.low)
    if known:
        axes.hlines(y, cell.low, cell.high, color=colour, linewidth=1.4, zorder=2.5)
    marker = look.marker if x == cell.ratio else ">" if x < cell.ratio else "<"
    marks(axes, [x], [y], Look(colour, marker), filled=known, size=3)
    if x != cell.ratio:
        axes.annotate(
            ratio_text(cell.ratio),
            *((x, y), (-3 if x < cell.ratio else 3, 0)),
            textcoords="offset points",
            ha="right" if x < cell.ratio else "left",
            va="center",
        )


def _legend(whole: pd.DataFrame) -> list[Artist]:
    handles: list[Artist] = [
        mark_handle(look, labels.transport_name(name), linestyle="none")
        for name, look in _SHOWN.items()
        if name in set(whole["transport"])
    ]
    floor = float(whole["floor"].max())
    if math.isfinite(floor):
        handles.append(Patch(color=BAND, label=f"noise floor ±{percent_text(floor)}"))
    return handles


def _description(whole: pd.DataFrame, columns: list[tuple[str, str]]) -> str:
    sentences = []
    for step, above in columns:
        ratios = ", ".join(
            f"{labels.mpi_name(row.mpi)} {labels.operation_name(row.operation)} {row.transport} "
            f"{labels.ratio_and_interval(row)}"
            for row in rows(at(whole, step=step, above=above))
        )
        sentences.append(f"{step}, {_head(above)}: {ratios}.")
    return "Dot chart of ratios of times by step. " + " ".join(sentences)


def answers(campaign: Campaign) -> Iterator[Answer]:
    """What the first step costs, other files without a container."""
    if not campaign.steps.empty:
        question = "What do the image's files cost without a container: its Python, its libc?"
        yield Answer(question, claims.files(campaign), figure=NAME)


TABLE = Listing(
    "chain",
    "Cost of each step from the host to a container",
    "Time in the arm above over time in the arm below, the step before it: in each block "
    f"the median over the sizes, then {OVER_BLOCKS} {WIDEST} "
    + " ".join(f"{name.capitalize()}: {what}." for name, what in labels.STEPS.items()),
    "whole_steps",
    GROUPS,
)
FIGURE = Figure(NAME, TITLE, draw, needs)
