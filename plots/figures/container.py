"""Figure 4: what a container costs, cell by cell: a forest plot by layout, engine and profile.

Beside each ratio stand the noise floor of the host itself and the band in which a cost counts as
none; which cells a drawing holds is decided here, too.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.analysis.campaign import Campaign, absent_containers
from experiments.analysis.selection import at, in_order, rows, usual
from experiments.analysis.statistics import EQUIVALENCE, Verdict
from experiments.model.arms import HOST, USERLAND, arm_key, in_container
from experiments.model.quantities import bytes_text, counted, percent_text, ranks_text
from plots.figures.chain import NAME as CHAIN
from plots.layout import labels
from plots.layout.facets import Part, heads, parts
from plots.layout.figure_layout import Drawing, Figure, say_instead, sheet
from plots.layout.marks import even_ticks, hollow, kind_handles, marks, ratio_axis
from plots.layout.style import BAND, INK, KINDS, MUTED, PAPER, TRANSPORTS, look
from plots.tables.listing import GROUPS, OVER_BLOCKS, WIDEST, Listing
from plots.text import causes, claims
from plots.text.claims import Answer, absent

NAME = "container"
TITLE = "Cost of a container"
MOST_INCHES = 6.4
"""Height of the panels: as much as the screen of a laptop holds, in letters that can be read."""
MOST_OPERATIONS = 3
MOST_CAVEATS = 2

MOST_RATIO = 2.0
"""A plainly logarithmic axis ends at this ratio at the latest, so that 2 % can be seen."""
NEAR = 0.05
"""Where medians are beyond it, the axis is linear within about this of 1 and logarithmic beyond."""
TICKS = (1.0, 10.0, 100.0, 2.0, 0.5, 1.4, 0.7, 1.2, 0.8, 1.1, 0.9, 0.1, 1000.0)
ROOM = 0.2  # of such an axis, between two ticks
_ROW = 0.105
_HEAD = 0.27
_SPREAD = 0.56  # of a row, over which its kinds are spread
_DOTTED: Any = (0, (1, 1.5))


class Sight(NamedTuple):
    """What all panels share: sizes, kinds, the ends of the ratio axis, and whether it is stretched
    around 1."""

    sizes: list[int]
    kinds: list[str]
    low: float
    high: float
    stretched: bool


def needs(campaign: Campaign) -> str:
    """A campaign needs a container beside the host, or a container's arm that is missing."""
    if not campaign.containers.empty or absent_containers(campaign.unmeasured):
        return ""
    if campaign.machine:
        return "what a container costs in time is not to be had on an emulated machine"
    if any(map(in_container, campaign.times["arm"])):
        return f"this campaign has no launch on the {HOST} beside those in containers"
    return "this campaign has no container arm"


def draw(campaign: Campaign) -> list[Drawing]:
    """Drawings of every container arm, and one in words for each arm that is missing."""
    missing = absent_containers(campaign.unmeasured)
    return [
        _drawing(part, campaign)
        for every in parts(usual(campaign.containers))
        for part in _pages(every)
    ] + [_missing(arm, campaign.unmeasured[arm]) for arm in missing]


def _pages(part: Part) -> Iterator[Part]:
    """A part in as few drawings as its rows and operations need, each with its own suffix."""
    operations = in_order(part.frame["operation"], labels.OPERATIONS)
    for first in range(0, len(operations), MOST_OPERATIONS):
        chunk = operations[first : first + MOST_OPERATIONS]
        frame = part.frame[part.frame["operation"].isin(chunk)]
        number = f"-{first // MOST_OPERATIONS + 1}" if first else ""
        for keys in ([], ["transport"], ["transport", "layout"]):
            groups = _groups(frame, keys)
            if all(_inches(group) <= MOST_INCHES for _, group in groups):
                break
        for levels, group in groups:
            words = [part.title_end, *(labels.LAYOUTS.get(level, level) for level in levels)]
            suffix = "-".join([part.suffix, *levels]) + number
            yield part._replace(suffix=suffix, title_end=", ".join(words), frame=group)


def _groups(frame: pd.DataFrame, keys: list[str]) -> list[tuple[tuple[str, ...], pd.DataFrame]]:
    """Rows by levels of the keys, in reading order; all of them, ungrouped, for no keys."""
    if not keys:
        return [((), frame)]
    order = in_order(frame["transport"], TRANSPORTS) + list(labels.LAYOUTS)
    groups = [(tuple(map(str, levels)), group) for levels, group in frame.groupby(keys, sort=True)]
    return sorted(groups, key=lambda pair: [order.index(level) for level in pair[0]])


def _inches(frame: pd.DataFrame) -> float:
    """How high the panels of a drawing of these cells are together."""
    panels = len(frame[["transport", "arm"]].drop_duplicates())
    row = _row(frame["kind"].nunique())
    return panels * (frame["bytes"].nunique() * row + _HEAD)


def _row(kinds: int) -> float:
    """Inches of a row: each of its kinds may have a number beside it."""
    return _ROW if kinds == 1 else _ROW * (kinds - 1) / _SPREAD


def _missing(arm: str, why: str) -> Drawing:
    page = sheet(f"{labels.arm_name(arm)} over {HOST}", panel_height=0.8, left=0.1, below=0.06)
    say_instead(page.panels[0][0], f"{arm}: {why}")
    return Drawing(
        NAME,
        f"-{arm}",
        f"{TITLE}: {labels.arm_name(arm)}",
        f"The arm {arm} of this campaign is missing.",
        f"Not measured. {arm}: {why}",
        page,
    )


def _drawing(part: Part, campaign: Campaign) -> Drawing:
    frame, floor = part.frame, campaign.floor
    operations = in_order(frame["operation"], labels.OPERATIONS)
    panels = [
        (transport, arm)
        for transport in in_order(frame["transport"], TRANSPORTS)
        for arm in sorted(set(at(frame, transport=transport)["arm"]), key=arm_key)
    ]
    sight = Sight(
        sorted({int(size) for size in frame["bytes"]}),
        in_order(frame["kind"], KINDS),
        *_axis_ends(frame, floor),
    )
    what = f"{ranks_text(part.ranks)}{part.title_end}"
    caveats = causes.caveats(campaign)
    if len(caveats) > MOST_CAVEATS:  # no room; the report lists them
        caveats = [f"{len(caveats)} caveats beside the container itself: see the report."]
    only = f", {panels[0][0]}" * (frame["transport"].nunique() == 1)
    page = sheet(
        f"Time in a container over the {HOST}, {ranks_text(part.ranks)}{only}",
        of=frame,
        panel_height=_row(len(sight.kinds)) * (len(sight.sizes) + 0.3),
        column_heads=[labels.operation_name(operation) for operation in operations],
        row_heads=heads(panels),
        legend=[*kind_handles(frame), *_bands(floor)],
        alerts=caveats,
        notes=_notes(frame, sight.stretched),
        left=0.58,
    )
    for axes, (transport, arm), operation in page.by(panels, operations):
        _grounds(axes, floor, sight)
        _panel(axes, at(frame, transport=transport, arm=arm, operation=operation), sight)
    _draw_axes(page.panels, sight)
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}, {what}",
        f"Time in the container over time on the {HOST}, paired within a block; median over blocks "
        "with its exact 95 % interval. The shaded band is the largest noise floor: how far two "
        f"identical {HOST} arms of this campaign stray from 1×. An effect is claimed where the "
        "whole interval is beyond the band; where it is between the dotted lines, the "
        f"container costs no more than {100 * EQUIVALENCE:.0f} %; elsewhere the interval bounds "
        "the cost." + "".join(f" {caveat}" for caveat in caveats),
        _description(frame, what, floor),
        page,
        {str(cell.Index): _words(cell) for cell in rows(frame)},
    )


def _axis_ends(frame: pd.DataFrame, floor: float) -> tuple[float, float, bool]:
    """Ends of the axis, and whether it is stretched around 1: where medians leave the narrow one.

    Every median is inside; an interval that is not is cut.
    """
    span = _narrow(frame, floor)
    least, most = float(frame["ratio"].min()), float(frame["ratio"].max())
    if 1 / span <= least and most <= span:
        return 1 / span, span, False
    return min(1 / span, least / 1.15), max(span, most * 1.15), True


def _narrow(frame: pd.DataFrame, floor: float) -> float:
    """Reaches over nine tenths of the intervals, within limits.

    A series with its median beyond the farthest axis does not count.
    """
    strays = frame[["ratio", "low", "high"]].map(lambda ratio: abs(math.log(ratio))).max(axis=1)
    far = strays.groupby([frame[key] for key in ("transport", "arm", "operation")])
    near = strays[far.transform("median") <= math.log(MOST_RATIO)]
    least = max(1.06, 1.05 / (1 - floor) if floor < 0.5 else 1.06)
    reach = float(near.quantile(0.9)) if len(near) else math.log(MOST_RATIO)
    return min(MOST_RATIO, max(least, math.exp(1.12 * reach)))


def _draw_axes(panels: list[list[Axes]], sight: Sight) -> None:
    """Set the axes that all panels share, and the label below the lowest ones."""
    axes = panels[0][0]
    axes.set_yticks(range(len(sight.sizes)), [bytes_text(size) for size in sight.sizes])
    axes.set_ylim(len(sight.sizes) - 0.45, -0.65)
    if sight.stretched:
        axes.set_xscale("function", functions=(_stretch, _shrink))
        ratio_axis(axes.xaxis, ticks(sight), unit="")
    else:
        axes.set_xscale("log")
        ratio_axis(axes.xaxis, even_ticks(sight.high), unit="")
    axes.set_xlim(sight.low, sight.high)
    bottom = panels[-1]
    middle = len(bottom) // 2
    bottom[middle].set_xlabel(
        "time ratio: ← container faster · slower →", x=0.5 if len(bottom) % 2 else -0.1
    )


def _stretch(ratio: Any) -> Any:
    return np.arcsinh(np.log(np.maximum(ratio, 1e-9)) / NEAR)


def _shrink(place: Any) -> Any:
    return np.exp(NEAR * np.sinh(place))


def ticks(sight: Sight) -> list[float]:
    """As many of TICKS, in their order, as are far enough apart on a stretched axis."""
    room = ROOM * (_stretch(sight.high) - _stretch(sight.low))
    kept: list[float] = []
    for tick in TICKS:
        near = any(abs(_stretch(tick) - _stretch(other)) < room for other in kept)
        if sight.low <= tick <= sight.high and not near:
            kept.append(tick)
    return sorted(kept)


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
    what = labels.in_words(cell, "arm", "operation", "transport", "bytes", "kind")
    return f"{what}: {labels.ratio_and_interval(cell)}, {cell.verdict}"


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


def answers(campaign: Campaign) -> Iterator[Answer]:
    """What a container costs by operation, why, and an answer per missing arm."""
    every = claims.compared(campaign)
    contained = every.cells[every.cells["arm"] != USERLAND] if len(every.cells) else every.cells
    operations = in_order(contained.get("operation", []), labels.OPERATIONS)
    over, topic = claims.base_name(every.base), NAME if every.base == HOST else CHAIN
    for name in operations:
        question = f"What does a container cost {labels.operation_name(name)}, {over}?"
        yield Answer(question, *claims.cost(campaign, name), figure=topic)
    if slowest := claims.tails(campaign) if operations else "":
        yield Answer(f"What do the slowest operations (p99) take {over}?", slowest)
    if operations or not campaign.steps.empty:
        yield from _causes(campaign)
    for arm in absent_containers(campaign.unmeasured):
        yield absent(f"What does a container cost ({labels.arm_name(arm)})?", arm, campaign)


def _causes(campaign: Campaign) -> Iterator[Answer]:
    """What a container lost, and what else may be the cause of its cost."""
    if differences := causes.sentences(campaign.data_paths):
        way = "Which data path did a container lose, what gets it back, and what did it cost?"
        none = "None: each MPI took the same ways in every container as on the host."
        lost = causes.short(campaign.data_paths.losses) or none
        yield Answer(way, lost, points=(*differences, *claims.losses(campaign)), figure=NAME)
    if others := tuple(causes.beside_data_path(campaign)):
        cause = "What may be the cause beside the container itself?"
        yield Answer(cause, others[0], points=others[1:])


TABLE = Listing(
    "container",
    "Cost of a container",
    f"Time in the arm named over time on the {HOST}.",
    "containers",
)
OVER_SIZES = Listing(
    "groups",
    "Cost of a container over all sizes",
    f"Time in the arm named over time on the {HOST}: in each block the median over the "
    f"sizes, then {OVER_BLOCKS} {WIDEST} p is of Wilcoxon's signed-rank test, not corrected.",
    "groups",
    GROUPS,
)
ISOLATION = Listing(
    "isolation",
    "Cost of a container over the same files without one",
    "Time in the arm named over time in the arm userland, which runs the image's files on "
    "the host.",
    "isolation",
)
TAILS = Listing(
    "tails",
    "Cost of a container to the slowest operations",
    "p99 of a launch in the arm named over that in the arm userland, or on the "
    f"{HOST} where there is none.",
    "tails",
)
FIGURE = Figure(NAME, TITLE, draw, needs)
