"""Figure 4: what a container costs, cell by cell: a forest plot by layout, engine and profile.

Beside each ratio stand the noise floor of the host itself and the band in which a cost counts as
none; which cells a drawing holds is decided here, too.
"""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.analysis.findings import Findings, absent_containers
from experiments.analysis.selection import at, in_order, rows, usual
from experiments.analysis.statistics import EQUIVALENCE, Verdict
from experiments.model.arms import HOST, arm_key, in_container
from experiments.model.quantities import counted, percent_text
from plots.layout import confounder_text
from plots.layout.container_axis import NEAR, Sight, draw_axes, ends
from plots.layout.facets import Part, heads, parts
from plots.layout.figure_layout import Drawing, Skipped, say_instead, sheet
from plots.layout.labels import (
    LAYOUTS,
    OPERATIONS,
    arm_name,
    in_words,
    operation_name,
    ranks_text,
    ratio_and_interval,
)
from plots.layout.marks import hollow, kind_handles, marks
from plots.layout.style import BAND, INK, KINDS, MUTED, PAPER, TRANSPORTS, look

NAME = "container"
TITLE = "Cost of a container"
MOST_INCHES = 6.4
"""Height of the panels: as much as the screen of a laptop holds, in letters that can be read."""
MOST_OPERATIONS = 3
MOST_CAVEATS = 2

_ROW = 0.105
_HEAD = 0.27
_SPREAD = 0.56  # of a row, over which its kinds are spread
_DOTTED: Any = (0, (1, 1.5))


def container(found: Findings) -> list[Drawing | Skipped]:
    """Drawings of every container arm, and one in words for each arm that is missing."""
    missing: list[Drawing | Skipped] = [
        _missing(arm, found.unmeasured[arm]) for arm in absent_containers(found.unmeasured)
    ]
    if found.containers.empty:
        return missing or [Skipped(NAME, TITLE, _reason(found))]
    return [
        _drawing(part, found) for every in parts(usual(found.containers)) for part in _pages(every)
    ] + missing


def _reason(found: Findings) -> str:
    if found.machine:
        return "what a container costs in time is not to be had on an emulated machine"
    if any(map(in_container, found.times["arm"])):
        return f"this campaign has no launch on the {HOST} beside those in containers"
    return "this campaign has no container arm"


def _pages(part: Part) -> Iterator[Part]:
    """A part in as few drawings as its rows and operations need, each with its own suffix."""
    operations = in_order(part.frame["operation"], OPERATIONS)
    for first in range(0, len(operations), MOST_OPERATIONS):
        chunk = operations[first : first + MOST_OPERATIONS]
        frame = part.frame[part.frame["operation"].isin(chunk)]
        number = f"-{first // MOST_OPERATIONS + 1}" if first else ""
        for keys in ([], ["transport"], ["transport", "layout"]):
            groups = _groups(frame, keys)
            if all(_inches(group) <= MOST_INCHES for _, group in groups):
                break
        for levels, group in groups:
            words = [part.title_end, *(LAYOUTS.get(level, level) for level in levels)]
            suffix = "-".join([part.suffix, *levels]) + number
            yield part._replace(suffix=suffix, title_end=", ".join(words), frame=group)


def _groups(frame: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    """Rows by levels of the keys, in reading order; all of them, ungrouped, for no keys."""
    if not keys:
        return [((), frame)]
    order = in_order(frame["transport"], TRANSPORTS) + list(LAYOUTS)
    found = [(tuple(map(str, levels)), group) for levels, group in frame.groupby(keys, sort=True)]
    return sorted(found, key=lambda each: [order.index(level) for level in each[0]])


def _inches(frame: pd.DataFrame) -> float:
    """How high the panels of a drawing of these cells are together."""
    panels = len(frame[["transport", "arm"]].drop_duplicates())
    row = _row(frame["kind"].nunique())
    return panels * (frame["bytes"].nunique() * row + _HEAD)


def _row(kinds: int) -> float:
    """Inches of a row: each of its kinds may have a number beside it."""
    return _ROW if kinds == 1 else _ROW * (kinds - 1) / _SPREAD


def _missing(arm: str, why: str) -> Drawing:
    page = sheet(f"{arm_name(arm)} over {HOST}", panel_height=0.8, left=0.1, below=0.06)
    say_instead(page.panels[0][0], f"{arm}: {why}")
    return Drawing(
        NAME,
        f"-{arm}",
        f"{TITLE}: {arm_name(arm)}",
        f"The arm {arm} of this campaign is missing.",
        f"Not measured. {arm}: {why}",
        page,
    )


def _drawing(part: Part, found: Findings) -> Drawing:
    frame, floor = part.frame, found.floor
    operations = in_order(frame["operation"], OPERATIONS)
    panels = [
        (transport, arm)
        for transport in in_order(frame["transport"], TRANSPORTS)
        for arm in sorted(set(at(frame, transport=transport)["arm"]), key=arm_key)
    ]
    sight = Sight(
        sorted({int(size) for size in frame["bytes"]}),
        in_order(frame["kind"], KINDS),
        *ends(frame, floor),
    )
    what = f"{ranks_text(part.ranks)}{part.title_end}"
    caveats = confounder_text.caveats(found)
    if len(caveats) > MOST_CAVEATS:  # no room; the report lists them
        caveats = [f"{len(caveats)} caveats beside the container itself: see the report."]
    only = f", {panels[0][0]}" * (frame["transport"].nunique() == 1)
    page = sheet(
        f"Time in a container over the {HOST}, {ranks_text(part.ranks)}{only}",
        of=frame,
        panel_height=_row(len(sight.kinds)) * (len(sight.sizes) + 0.3),
        column_heads=[operation_name(operation) for operation in operations],
        row_heads=heads(panels),
        legend=[*kind_handles(frame), *_bands(floor)],
        alerts=caveats,
        notes=_notes(frame, sight.stretched),
        left=0.58,
    )
    for axes, (transport, arm), operation in page.by(panels, operations):
        _grounds(axes, floor, sight)
        _panel(axes, at(frame, transport=transport, arm=arm, operation=operation), sight)
    draw_axes(page.panels, sight)
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}, {what}",
        f"Time in the container over time on the {HOST}, paired within a block; median over blocks "
        "with its exact 95 % interval. The shaded band is the largest noise floor: how far two "
        f"identical {HOST} arms of this campaign stray from 1×. An effect is claimed where the "
        "whole interval is beyond the band; where it is between the dotted lines, the "
        f"container costs no more than {100 * EQUIVALENCE:.0f} %; elsewhere the interval bounds "
        "the cost." + "".join(f" {each}" for each in caveats),
        _description(frame, what, floor),
        page,
        {str(cell.Index): _words(cell) for cell in rows(frame)},
    )


def _grounds(axes: Axes, floor: float, sight: Sight) -> None:
    """The background of the marks: the noise floor, the band of equivalence, and no effect."""
    if math.isfinite(floor):
        left, right = max(1 - floor, sight.low), min(1 + floor, sight.high)
        axes.axvspan(left, right, color=BAND, linewidth=0, zorder=0.5)
    for edge in (1 - EQUIVALENCE, 1 + EQUIVALENCE):
        axes.axvline(edge, color=INK, linewidth=0.5, linestyle=_DOTTED, zorder=0.9)
    axes.axvline(1, color=MUTED, linewidth=0.7, zorder=1)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def _bands(floor: float) -> list[Artist]:
    known, no_cost = math.isfinite(floor), f"±{100 * EQUIVALENCE:.0f} %: no cost"
    return [
        Patch(
            facecolor=BAND if known else PAPER,
            edgecolor="none" if known else MUTED,
            linewidth=0.5,
            label=f"noise floor ±{percent_text(floor)}" if known else "no noise floor",
        ),
        Line2D([], [], color=INK, linewidth=0.5, linestyle=_DOTTED, label=no_cost),
    ]


def _notes(frame: pd.DataFrame, stretched: bool) -> list[str]:
    fewest, most = int(frame["blocks"].min()), int(frame["blocks"].max())
    blocks = f"{fewest} to {most} blocks" if fewest < most else counted(most, "block")
    notes = [f"Median over {blocks}, paired, with 95 % interval.", *hollow(frame, "blocks")]
    if stretched:
        notes.append(
            f"The axis is linear within ±{100 * NEAR:.0f} % of 1, about, and logarithmic beyond."
        )
    return notes


def _panel(axes: Axes, frame: pd.DataFrame, sight: Sight) -> None:
    count = len(sight.kinds)
    for cell in rows(frame):
        offset = _SPREAD * (sight.kinds.index(cell.kind) - (count - 1) / 2) / max(1, count - 1)
        y = sight.sizes.index(cell.bytes) + offset
        kind = look(cell.kind)
        known = math.isfinite(cell.low) and math.isfinite(cell.high)
        if known:
            axes.hlines(y, cell.low, cell.high, color=kind.colour, linewidth=1.2, zorder=2)
        gid = f"cell-{cell.Index}"
        marks(axes, cell.ratio, y, kind, filled=known, size=2.6, clip_on=False, gid=gid)


def _words(cell: Any) -> str:
    """A cell in one line."""
    what = in_words(cell, "arm", "operation", "transport", "bytes", "kind")
    return f"{what}: {ratio_and_interval(cell)}, {cell.verdict}"


def _description(frame: pd.DataFrame, what: str, floor: float) -> str:
    outside = frame[frame["verdict"] == Verdict.DIFFERS]
    none = int((frame["verdict"] == Verdict.EQUIVALENT).sum())
    sentences = [f"{_words(cell)}." for cell in rows(outside)]
    return (
        f"Forest plot of the time in a container over the time on the {HOST}, {what}, "
        f"{len(frame)} cells, noise floor {percent_text(floor)}. In {none} of them the container "
        f"costs no more than {100 * EQUIVALENCE:.0f} %. Beyond the noise floor: "
        + (" ".join(sentences) or "none.")
    )
