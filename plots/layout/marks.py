"""What several figures share: points with intervals, axes of values, legend entries."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from experiments.analysis.selection import in_order
from experiments.model.quantities import bytes_text, tick_text
from plots.layout.figure_layout import Page
from plots.layout.labels import kind_name, transport_name
from plots.layout.style import (
    BOUND_LINE,
    INK,
    KINDS,
    PAPER,
    PLAIN,
    TRANSPORTS,
    Look,
    Stroke,
    look,
    series,
    stroke,
)

_MARK = 2.8  # points; smaller where many sizes crowd


def points(
    axes: Axes,
    frame: pd.DataFrame,
    value: str,
    look: Look,
    line: Stroke = PLAIN,
    *,
    across: str = "bytes",
    shift: float = 1.0,
    joined: bool = True,
) -> None:
    """A point with its interval for every row; hollow where low and high are NaN.

    Args:
        frame: columns `value`, low and high of the same unit, and `across`.
        line: connects the points where they are `joined`; marks are as much larger or smaller as
            its weight, at half the rate.
        across: column of the horizontal axis.
        shift: factor of its values, so that series side by side do not hide one another.
    """
    if frame.empty:
        return
    frame = frame.sort_values(across)
    x = frame[across].to_numpy(dtype=float) * shift
    y, low, high = (frame[column].to_numpy(dtype=float) for column in (value, "low", "high"))
    if joined:
        axes.plot(x, y, ls=line.dashes, linewidth=line.weight, color=look.colour, zorder=2)
    size = _MARK * math.sqrt(line.weight) * (1.0 if len(frame) <= 9 else 0.7)
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        axes.vlines(x[known], low[known], high[known], color=look.colour, linewidth=1.4, zorder=2.5)
    for mask, filled in ((known, True), (~known, False)):
        if mask.any():
            marks(axes, x[mask], y[mask], look, filled=filled, size=size)


def marks(
    axes: Axes, x: Any, y: Any, look: Look, *, filled: bool, size: float = _MARK, **line: Any
) -> None:
    """Marks without a line between them, filled or hollow.

    Args:
        size: points.
        line: other properties of a Line2D.
    """
    axes.plot(
        x,
        y,
        linestyle="none",
        marker=look.marker,
        markersize=size,
        markerfacecolor=look.colour if filled else PAPER,
        markeredgecolor=look.colour,
        markeredgewidth=0.7,
        zorder=3,
        **line,
    )


def measured(axes: Axes, frame: pd.DataFrame, across: str, look: Look) -> None:
    """Marks of measured times: filled, of the half that models are fitted on; hollow, the others.

    Args:
        frame: columns `seconds`, `fitted` and the one that is named by `across`.
    """
    for fitted in (True, False):
        part = frame[frame["fitted"] == fitted]
        marks(axes, part[across], part["seconds"], look, filled=fitted)


def dodge(index: int, of: int) -> float:
    """Factor that sets series apart on a logarithmic size axis: at most a sixth of an octave."""
    return float(2 ** (0.3 * (index - (of - 1) / 2) / max(1, of - 1))) if of > 1 else 1.0


def size_axis(
    page: Page, sizes: Iterable[int], most: int, label: str = "message size per rank"
) -> None:
    """A logarithmic axis of message sizes: a tick at each, at most `most` of them labelled.

    All panels share it; those of the last row name it.
    """
    axes = page.panels[0][0]
    sizes = sorted(set(sizes))
    labelled = spread(sizes, most)
    axes.set_xscale("log", base=2)
    margin = 2.0 ** max(0.5, 0.08 * math.log2(sizes[-1] / sizes[0]))
    axes.set_xlim(sizes[0] / margin, sizes[-1] * margin)
    axes.xaxis.set_major_locator(FixedLocator([float(size) for size in labelled]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(round(size))))
    axes.xaxis.set_minor_locator(FixedLocator([float(size) for size in sizes]))
    axes.xaxis.set_minor_formatter(NullFormatter())
    for last in page.panels[-1]:
        last.set_xlabel(label)


def counts_axis(axes: Axes) -> None:
    """A logarithmic axis of numbers of machines."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def hollow(frame: pd.DataFrame, replicates: str = "launches") -> list[str]:
    """What a hollow mark means, where one is drawn; `low` is NaN there."""
    if not frame["low"].isna().any():
        return []
    return [f"Hollow mark: too few {replicates} for a 95 % interval."]


def bound_handle() -> Line2D:
    """The legend's entry of the memory bound."""
    return Line2D([], [], color=INK, linestyle=BOUND_LINE, linewidth=0.9, label="memory bound")


def spread(values: Sequence[int], most: int) -> list[int]:
    """At most `most` of the values, evenly spaced, both ends among them; all, or no neighbours."""
    count = len(values) if len(values) <= most else max(2, min(most, (len(values) + 1) // 2))
    return [values[round(place)] for place in np.linspace(0, len(values) - 1, count)]


def ratio_span(frame: pd.DataFrame, *, least: float, most: float) -> float:
    """Span of an axis from 1/span to span that holds every ratio and interval, within limits."""
    drawn = np.log(frame[["ratio", "low", "high"]].to_numpy(dtype=float))
    return min(most, max(least, math.exp(1.12 * float(np.nanmax(np.abs(drawn))))))


def seconds_axis(axes: Axes, *, multiples: bool = True) -> None:
    """A logarithmic axis of times, with a label at each power of ten.

    Args:
        multiples: whether all their multiples have ticks; else only where they are not too many.
    """
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    if multiples:
        axes.yaxis.set_minor_locator(LogLocator(10, subs=range(2, 10), numticks=20))
    axes.yaxis.set_minor_formatter(NullFormatter())


def positive_ends(frame: pd.DataFrame) -> tuple[float, float]:
    """The least and the greatest number of a frame that a logarithmic axis can show."""
    drawn = frame.to_numpy(dtype=float)
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    return float(drawn.min()), float(drawn.max())


def ratio_ends(ratios: Any) -> tuple[float, float]:
    """Ends of a logarithmic axis around 1 that holds all ratios."""
    return min(0.8, float(np.nanmin(ratios)) / 1.15), max(1.25, float(np.nanmax(ratios)) * 1.15)


def ratio_scale(axes: Axes, low: float, high: float, ticks: Sequence[float]) -> None:
    """A logarithmic vertical axis of ratios."""
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    ratio_axis(axes.yaxis, ticks)


def ratio_axis(axis: Axis, ticks: Sequence[float], unit: str = "×") -> None:
    """Ratios as ticks; the scale and the limits are the caller's."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}{unit}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def ratio_ticks(low: float, high: float) -> list[float]:
    """Round ratios within a logarithmic axis: few enough to be legible, 1 among them."""
    for ticks in (
        (0.9, 1, 1.1, 1.2),
        (0.7, 0.8, 1, 1.25, 1.5),
        (0.5, 1, 2, 3, 4, 5),
        (0.25, 0.5, 1, 2, 4, 8),
    ):
        inside = [tick for tick in ticks if low <= tick <= high]
        if high <= 1.3 * inside[-1] and low >= inside[0] / 1.5:
            return inside
    steps = (1, 2, 5) if high <= 100 * low else (1,)
    every = (step * 10.0**power for power in range(-4, 5) for step in steps)
    return [tick for tick in every if low <= tick <= high]


def even_ticks(span: float) -> list[float]:
    """Round ratios on both sides of 1, for an axis from 1/span to span."""
    for limit, ticks in (
        (1.12, [0.95, 1, 1.05]),
        (1.3, [0.9, 1, 1.1]),
        (1.45, [0.8, 1, 1.25]),
        (2.1, [0.7, 1, 1.4]),
        (2.8, [0.5, 0.7, 1, 1.4, 2]),
        (3.5, [0.5, 1, 2]),
        (4.4, [0.33, 1, 3]),
    ):
        if span <= limit:
            return ticks
    return [0.1, 0.33, 1, 3, 10]


def look_of(kind: str, transport: str, transports: Iterable[str]) -> Look:
    """The look of a point: its kind's, with its transport's mark where several are shown."""
    own = look(kind)
    return Look(own.colour, stroke(transport).marker) if len(set(transports)) > 1 else own


def kind_handles(frame: pd.DataFrame, *, marks: bool = True) -> list[Artist]:
    """A legend entry for each kind of memory in the frame.

    Args:
        marks: whether kinds have marks of their own; else colours alone.
    """
    emulated = set(frame.loc[frame["emulated"].astype(bool), "kind"])
    names = {kind: kind_name(kind, kind in emulated) for kind in in_order(frame["kind"], KINDS)}
    if not marks:
        return [colour_handle(look(kind).colour, name) for kind, name in names.items()]
    return [mark_handle(look(kind), name, linestyle="none") for kind, name in names.items()]


def mark_handle(look: Look, label: str, **line: Any) -> Line2D:
    """A legend entry for marks and the line between them.

    Args:
        line: other properties of the Line2D; linestyle="none" leaves the marks alone.
    """
    return Line2D([], [], color=look.colour, marker=look.marker, label=label, **line)


def series_handles(labels: Iterable[str]) -> list[Artist]:
    """A legend entry for each series, by its place among them."""
    return [mark_handle(series(place), label) for place, label in enumerate(labels)]


def colour_handle(colour: str, label: str) -> Artist:
    """A legend entry for a colour, whatever the mark."""
    return Line2D([], [], color=colour, linewidth=4.5, solid_capstyle="butt", label=label)


def transport_handles(
    transports: Iterable[str], colours: Mapping[str, str] | None = None
) -> list[Artist]:
    """A legend entry for each transport, where there is more than one.

    Args:
        colours: of each transport, where they differ by colour as well.
    """
    names = in_order(transports, TRANSPORTS)
    if len(names) < 2:
        return []
    return [
        mark_handle(
            Look((colours or {}).get(name, INK), stroke(name).marker),
            transport_name(name),
            linestyle=stroke(name).dashes,
            linewidth=stroke(name).weight,
        )
        for name in names
    ]
