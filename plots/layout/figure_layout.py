"""A figure's page: heading, warnings, legend, a grid of panels, notes, at one column's width.

Drawn for a paper, heading, details and notes are left to the file of its caption.

Places everything in inches, so that nothing overlaps and nothing depends on a layout engine.
Knows nothing of what the panels show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from plots.layout.style import (
    ALERT,
    COLUMN_INCHES,
    HEAD_POINTS,
    INK,
    MUTED,
    is_printed,
    text_points,
)

_LINE = 0.135
_MARGIN = 0.06
_GAP = 0.07
_HEAD = 0.17


class Page(Figure):
    """A figure that knows its words, drawn or left to its caption.

    Attributes:
        words: heading's details, then notes.
        printed: whether it is drawn for a paper.
    """

    words: tuple[str, ...] = ()
    printed: bool = False


@dataclass(frozen=True)
class Drawing:
    """A figure and its words.

    Attributes:
        topic: what an answer names it by; the NAME of its module, for most.
        part: of the topic's drawings: "-mpich-2-ranks"; "" where there is one.
        caption: how to read it, whole sentences.
        description: what it shows, for those who cannot see it.
        marks: what each mark that can be asked about shows; the mark of cell 3 has the gid cell-3.
        detail: whether it shows how well was measured, rather than what.
    """

    topic: str
    part: str
    title: str
    caption: str
    description: str
    figure: Figure
    marks: Mapping[str, str] = field(default_factory=dict)
    detail: bool = False

    @property
    def name(self) -> str:
        """Stem of its files, and its anchor on a page."""
        return f"{self.topic}{self.part}"

    @property
    def printed(self) -> bool:
        """Whether it is drawn for a paper."""
        return isinstance(self.figure, Page) and self.figure.printed

    @property
    def printed_caption(self) -> str:
        """Title, what all panels have in common, how to read it, notes."""
        details, *notes = (isinstance(self.figure, Page) and self.figure.words) or ("",)
        common = [f"{details}."] if details else []
        return " ".join([f"{self.title}.", *common, self.caption, *notes])


@dataclass(frozen=True)
class Skipped:
    """A figure that this campaign cannot fill, and why."""

    name: str
    title: str
    reason: str


@dataclass(frozen=True)
class Sheet:
    """The figure and its panels, row by row."""

    figure: Figure
    panels: list[list[Axes]]

    def flat(self) -> list[Axes]:
        """All panels, row by row."""
        return [panel for row in self.panels for panel in row]


def sheet(
    heading: str,
    details: str,
    *,
    rows: int,
    columns: int,
    panel_height: float | Sequence[float],
    column_heads: Sequence[str] = (),
    row_heads: Sequence[str] = (),
    legend: Sequence[Artist] = (),
    legend_columns: int = 3,
    alerts: Sequence[str] = (),
    notes: Sequence[str] = (),
    left: float = 0.5,
    below: float = 0.34,
    shared: bool = True,
) -> Sheet:
    """Lay out a figure of rows x columns panels.

    Args:
        details: what all panels have in common; one grey paragraph below the heading.
        panel_height, left, below: inches; left is for tick labels, below for the x axis. Rows
            of unlike height are named one by one.
        column_heads, row_heads: what the panels of a column, and of a row, have in common.
        legend: handles, each with its label.
        alerts: what a reader must not overlook; printed in colour above the panels.
        notes: how to read the marks; small print below the panels.
        shared: whether all panels have the same axes.
    """
    inner, printed, points = COLUMN_INCHES - 2 * _MARGIN, is_printed(), text_points()
    head_lines = [] if printed else wrap(heading, inner, HEAD_POINTS, bold=True)
    detail_lines = [] if printed else wrap(details, inner, points)
    alert_lines = [line for text in alerts for line in wrap(text, inner, points, bold=True)]
    note_lines = [] if printed else [line for text in notes for line in wrap(text, inner, points)]
    legend_lines = -(-len(legend) // legend_columns)
    top = (
        _MARGIN
        + 0.155 * len(head_lines)
        + _LINE * (len(detail_lines) + len(alert_lines) + legend_lines)
        + _GAP * (1 + bool(alert_lines) + bool(legend_lines))
        + (_HEAD if column_heads else 0.0)
        + (_HEAD if row_heads else 0.0)
    )
    row_gap = 0.1 + (_HEAD if row_heads else 0.0)
    bottom = below + (_LINE * len(note_lines) + _GAP if note_lines else 0.0) + _MARGIN
    heights = [panel_height] * rows if isinstance(panel_height, float) else list(panel_height)
    grid = sum(heights) + (rows - 1) * row_gap
    height = top + grid + bottom
    figure = Page(figsize=(COLUMN_INCHES, height))
    figure.words, figure.printed = (details, *notes), printed

    y = height - _MARGIN
    y = _print(figure, head_lines, y, 0.155, height, size=HEAD_POINTS, weight="bold", color=INK)
    y = _print(figure, detail_lines, y, _LINE, height, size=points, color=MUTED)
    if alert_lines:
        y = _print(
            figure,
            alert_lines,
            y - _GAP,
            _LINE,
            height,
            size=points,
            weight="bold",
            color=ALERT,
        )
    if legend:
        figure.legend(
            handles=list(legend),
            loc="upper left",
            bbox_to_anchor=(_MARGIN / COLUMN_INCHES, (y - _GAP) / height),
            ncols=legend_columns,
            borderaxespad=0.0,
            borderpad=0.0,
            labelspacing=0.3,
            handlelength=2.2,
            handletextpad=0.5,
            columnspacing=1.2,
        )
    if note_lines:
        _print(
            figure,
            note_lines,
            _MARGIN + _LINE * len(note_lines),
            _LINE,
            height,
            size=points,
            color=MUTED,
        )

    spec = figure.add_gridspec(
        rows,
        columns,
        left=left / COLUMN_INCHES,
        right=1 - 0.1 / COLUMN_INCHES,
        top=1 - top / height,
        bottom=bottom / height,
        hspace=row_gap * rows / sum(heights),
        height_ratios=heights,
        wspace=0.2,
    )
    panels = spec.subplots(sharex=shared, sharey=shared, squeeze=False)
    for axes, text in zip(panels[0], column_heads, strict=False):
        axes.set_title(text, loc="left", pad=4 + (72 * _HEAD if row_heads else 0), color=MUTED)
    for row, text in zip(panels, row_heads, strict=False):
        row[0].annotate(
            text,
            ((_MARGIN / COLUMN_INCHES), 1),
            xycoords=("figure fraction", "axes fraction"),
            xytext=(0, 3.5),
            textcoords="offset points",
            fontweight="bold",
        )
    return Sheet(figure, [list(row) for row in panels])


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


def _print(
    figure: Figure, lines: Sequence[str], y: float, pitch: float, height: float, **look: object
) -> float:
    """Lines of text from y inches downwards; the y below the last."""
    for line in lines:
        figure.text(_MARGIN / COLUMN_INCHES, y / height, line, va="top", ha="left", **look)  # type: ignore[arg-type]
        y -= pitch
    return y


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
