"""A figure's page: heading, warnings, legend, a grid of panels, notes.

Drawn for a paper, it has a column's width, and heading, details and notes are left to the file of
its caption. Drawn for a screen it is twice as wide.

Places everything in inches, so that nothing overlaps and nothing depends on a layout engine.
Knows of what the panels show what all rows have in common.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import matplotlib.figure
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from experiments.analysis.campaign import Campaign
from plots.layout import labels
from plots.layout.style import (
    ALERT,
    COLUMN_INCHES,
    HEAD_POINTS,
    INK,
    MUTED,
    is_printed,
    page_inches,
    text_points,
)

_LINE = 0.135
_MARGIN = 0.06
_GAP = 0.07
_HEAD = 0.17

_R = TypeVar("_R")
_C = TypeVar("_C")


class Page(matplotlib.figure.Figure):
    """A figure that knows its panels, and its words, drawn or left to its caption.

    Attributes:
        panels: row by row.
        words: heading's details, then notes.
        printed: whether it is drawn for a paper.
    """

    panels: list[list[Axes]]
    words: tuple[str, ...] = ()
    printed: bool = False

    def flat(self) -> list[Axes]:
        """All panels, row by row."""
        return [panel for row in self.panels for panel in row]

    def by(self, rows: Sequence[_R], columns: Sequence[_C]) -> Iterator[tuple[Axes, _R, _C]]:
        """Each panel with what its row and its column show."""
        for panels, row in zip(self.panels, rows, strict=True):
            for axes, column in zip(panels, columns, strict=True):
                yield axes, row, column


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    Attributes:
        topic: what an answer names it by; the NAME of its module, for most.
        part: of the topic's drawings: "-mpich-2-ranks"; "" where there is one.
        caption: how to read it, whole sentences.
        description: what it shows, for screen readers.
        marks: what each mark that can be asked about shows; the mark of cell 3 has the gid cell-3.
        detail: whether it shows how well was measured, rather than what.
    """

    topic: str
    part: str
    title: str
    caption: str
    description: str
    figure: Page
    marks: Mapping[str, str] = field(default_factory=dict)
    detail: bool = False

    @property
    def name(self) -> str:
        """Stem of its files, and its anchor on a page."""
        return f"{self.topic}{self.part}"

    @property
    def printed_caption(self) -> str:
        """Title, what all panels have in common, how to read it, notes."""
        details, *notes = self.figure.words or ("",)
        common = [f"{details}."] if details else []
        return " ".join([f"{self.title}.", *common, self.caption, *notes])


@dataclass(frozen=True)
class Skipped:
    """A figure that this campaign cannot fill, and why."""

    name: str
    title: str
    reason: str


@dataclass(frozen=True)
class Figure:
    """A figure of campaigns: called with one, it gives its drawings.

    Attributes:
        name: of its drawings' topic.
        draw: the drawings; none of a campaign that does not ask for what they show.
        needs: why a campaign that should have them lacks what they show; "" where it has it.
    """

    name: str
    title: str
    draw: Callable[[Campaign], Sequence[Drawing]]
    needs: Callable[[Campaign], str] = lambda campaign: ""

    def __call__(self, campaign: Campaign) -> Sequence[Drawing | Skipped]:
        """The drawings, or why there are none."""
        reason = self.needs(campaign)
        return [Skipped(self.name, self.title, reason)] if reason else self.draw(campaign)


def sheet(
    heading: str,
    details: str = "",
    *,
    of: pd.DataFrame | None = None,
    panel_height: float | Sequence[float],
    column_heads: Sequence[str] = (),
    row_heads: Sequence[str] = (),
    legend: Sequence[Artist] = (),
    legend_columns: int = 2,
    alerts: Sequence[str] = (),
    notes: Sequence[str] = (),
    left: float = 0.5,
    below: float = 0.34,
    shared: bool = True,
) -> Page:
    """Lay out a figure: a row of panels for each row head, a column for each column head.

    Args:
        details: what all panels have in common; one grey paragraph below the heading.
        of: the rows that are drawn, which give details and alerts by themselves.
        panel_height, left, below: inches; left is for tick labels, below for the x axis. Rows
            of unlike height are named one by one.
        column_heads, row_heads: what the panels of a column, and of a row, have in common; one
            column or row, without a head, where there are none.
        legend: handles, each with its label.
        legend_columns: in print; there are twice as many on a screen.
        alerts: what a reader must not overlook; printed in colour above the panels.
        notes: how to read the marks; small print below the panels.
        shared: whether all panels have the same axes.
    """
    if of is not None:
        details, alerts = labels.setting(of), [*labels.alerts(of), *alerts]
    printed, width = is_printed(), page_inches()
    legend_columns *= round(width / COLUMN_INCHES)
    rows, columns = len(row_heads) or 1, len(column_heads) or 1
    title = _Text([heading], color=INK, bold=True, points=HEAD_POINTS, pitch=0.155)
    words = [] if printed else [title, _Text([details], color=MUTED)]
    above = [*words, _Text(alerts, color=ALERT, bold=True, gap=_GAP)]
    entries = _GAP + _LINE * math.ceil(len(legend) / legend_columns) if legend else 0.0
    small_print = _Text([] if printed else notes, color=MUTED, gap=_GAP)
    heads = _HEAD * (bool(column_heads) + bool(row_heads))
    top = _MARGIN + (sum(block.height for block in above) + entries) + _GAP + heads
    row_gap = 0.1 + _HEAD * bool(row_heads)
    bottom = below + small_print.height + _MARGIN
    heights = [panel_height] * rows if isinstance(panel_height, float) else list(panel_height)
    height = top + sum(heights) + (rows - 1) * row_gap + bottom

    figure = Page(figsize=(width, height))
    figure.words, figure.printed = (details, *notes), printed
    y = height - _MARGIN
    for block in above:
        y = block.draw(figure, y)
    if legend:
        _draw_legend(figure, legend, legend_columns, y - _GAP)
    small_print.draw(figure, _MARGIN + small_print.height)
    figure.panels = _panels(figure, heights, columns, row_gap, (left, top, bottom), shared)
    _draw_heads(figure, column_heads, row_heads)
    return figure


def _panels(
    page: Page,
    heights: Sequence[float],
    columns: int,
    row_gap: float,
    margins: tuple[float, float, float],
    shared: bool,
) -> list[list[Axes]]:
    """Rows of panels, so high; margins left, above and below of them. All in inches."""
    left, top, bottom = margins
    spec = page.add_gridspec(
        len(heights),
        columns,
        left=left / page.get_figwidth(),
        right=1 - 0.1 / page.get_figwidth(),
        top=1 - top / page.get_figheight(),
        bottom=bottom / page.get_figheight(),
        hspace=row_gap * len(heights) / sum(heights),
        height_ratios=heights,
        wspace=0.2,
    )
    grid: list[list[Axes]] = spec.subplots(sharex=shared, sharey=shared, squeeze=False).tolist()
    return grid


def _draw_heads(page: Page, of_columns: Sequence[str], of_rows: Sequence[str]) -> None:
    """Above the panels of the first row, and at the margin of each row."""
    for axes, text in zip(page.panels[0], of_columns, strict=False):
        axes.set_title(text, loc="left", pad=4 + 72 * _HEAD * bool(of_rows), color=MUTED)
    for row, text in zip(page.panels, of_rows, strict=False):
        row[0].annotate(
            text,
            (_MARGIN / page.get_figwidth(), 1),
            xycoords=("figure fraction", "axes fraction"),
            xytext=(0, 3.5),
            textcoords="offset points",
            fontweight="bold",
        )


class _Text:
    """Paragraphs of one look, broken into lines; of no height where there are none.

    Attributes:
        height: inches, with the gap above.
    """

    def __init__(
        self,
        paragraphs: Sequence[str],
        *,
        color: str,
        bold: bool = False,
        points: float | None = None,
        pitch: float = _LINE,
        gap: float = 0.0,
    ) -> None:
        """Break the paragraphs into lines of the page's width.

        Args:
            points: size of the font; that of ordinary text where it is left out.
            pitch, gap: inches from line to line, and above the first.
        """
        size = points or text_points()
        inner = page_inches() - 2 * _MARGIN
        self.lines = [line for text in paragraphs for line in wrap(text, inner, size, bold=bold)]
        self.look = {"color": color, "size": size, "weight": "bold" if bold else "normal"}
        self.pitch, self.gap = pitch, gap
        self.height = gap + pitch * len(self.lines) if self.lines else 0.0

    def draw(self, figure: matplotlib.figure.Figure, y: float) -> float:
        """Draw from y inches downwards; return the y below."""
        x, height = _MARGIN / figure.get_figwidth(), figure.get_figheight()
        for number, line in enumerate(self.lines):
            down = self.gap + self.pitch * number
            figure.text(x, (y - down) / height, line, va="top", ha="left", **self.look)  # type: ignore[arg-type]
        return y - self.height


def _draw_legend(
    figure: matplotlib.figure.Figure, handles: Sequence[Artist], columns: int, y: float
) -> None:
    """The legend from y inches downwards."""
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(_MARGIN / figure.get_figwidth(), y / figure.get_figheight()),
        ncols=columns,
        borderaxespad=0.0,
        borderpad=0.0,
        labelspacing=0.3,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def say_instead(axes: Axes, text: str) -> None:
    """Put the reason where the data of a panel would be."""
    text = f"Not measured. {text}"
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    lines = wrap(text, box.width - 0.16, text_points())
    room = int(box.height / _LINE)
    if len(lines) > room:
        lines = [*lines[: room - 1], lines[room - 1].rsplit(" ", 1)[0] + " …"]
    axes.text(
        0.5,
        0.5,
        "\n".join(lines),
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=MUTED,
        linespacing=1.25,
    )
    axes.set_axis_off()


def wrap(text: str, inches: float, points: float, *, bold: bool = False) -> list[str]:
    """Break text into lines no wider than `inches`, by the font's own widths.

    One per cent is left for the rounding that hinting adds at a screen's resolution.
    """
    family = matplotlib.rcParams["font.family"]
    font = FontProperties(family=family, weight="bold" if bold else "normal", size=points)
    most = inches * 72 * 0.99
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        width, _, _ = text_to_path.get_text_width_height_descent(longer, font, False)
        if lines and width <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
