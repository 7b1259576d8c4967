"""How every figure looks: colours, markers, lines and sizes. Knows no data.

Colours follow Okabe and Ito (colour-blind safe), darkened where white paper needs it; transports
differ by mark and line, kinds by colour and lightness and, where one transport is shown, by mark,
so that greyscale works. Text in SVG is
drawn as outlines: with font names instead, a machine without the font would show other widths and
overlaps.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib.style

COLUMN_INCHES = 3.4
"""Width of one column of a two-column paper, of figures that are drawn for one."""
SCREEN_INCHES = 2 * COLUMN_INCHES
"""Width of figures that are drawn for a page: beside each other, panels need less height."""

TEXT_POINTS = 7.0
HEAD_POINTS = 8.5

INK = "#1b2733"
MUTED = "#55626f"
GRID = "#dde3e8"
PAPER = "#ffffff"
BAND = "#c9d1d9"
ALERT = "#a33b00"

DARK = {
    INK: "#e6ebf0",
    MUTED: "#a9b4bf",
    GRID: "#333d47",
    PAPER: "#161b21",
    BAND: "#46525e",
    ALERT: "#ff9a5c",
    "#0b4f7d": "#63b3ed",
    "#d55e00": "#ff8c3a",
    "#007a5a": "#3ccb9f",
    "#b0568a": "#e59ac6",
    "#8a6d00": "#e0b93c",
    "#2b8cbe": "#8fd3f4",
    "#4d4d4d": "#c4c4c4",
    "#6a3d9a": "#b99be8",
}
"""By a figure's colour: its replacement on a dark page; figures use only these colours."""


@dataclass(frozen=True)
class Look:
    """What distinguishes one series from another, in colour and without."""

    colour: str
    marker: str


@dataclass(frozen=True)
class Stroke:
    """What distinguishes a transport: dashes, weight of line and mark, and the mark."""

    dashes: Any
    weight: float
    marker: str


KINDS = {
    "regular": Look("#0b4f7d", "o"),
    "hbw": Look("#d55e00", "s"),
    "hbw_all": Look("#007a5a", "^"),
    "hbw_preferred": Look("#b0568a", "D"),
    "hbw_interleave": Look("#8a6d00", "v"),
    "highest_bandwidth_local": Look("#2b8cbe", "P"),
    "dax_kmem": Look("#4d4d4d", "X"),
}

PARTIES = {
    "direct": Look("#d55e00", "s"),
    "other-build": Look("#2b8cbe", "P"),
    "openmpi": Look("#0b4f7d", "o"),
    "mpich": Look("#007a5a", "^"),
    "impi": Look("#b0568a", "D"),
    "pickle": Look("#8a6d00", "v"),
    "objects": Look("#d55e00", "d"),
    "gloo": Look("#4d4d4d", "X"),
    "torch": Look("#6a3d9a", "<"),
    "operators": Look("#d55e00", ">"),
    "vllm": Look("#2b8cbe", "h"),
    "deepspeed": Look("#8a6d00", "p"),
    "oneccl": Look("#007a5a", "*"),
}
"""The parties of a bench."""
OTHER = Look("#4d4d4d", "*")


def party(name: str) -> Look:
    """How an MPI or another party looks; OTHER for one that is unknown here."""
    return PARTIES.get(name, OTHER)


PLAIN = Stroke("-", 1.0, "")
TRANSPORTS = {
    "direct": Stroke("-", 1.5, "s"),
    "hierarchical": Stroke((0, (5, 1.2, 1, 1.2, 1, 1.2)), 1.5, "D"),
    "mpi": Stroke((0, (4, 1.6)), 1.0, "o"),
    "pickle": Stroke((0, (5, 1.2, 1, 1.2)), 0.8, "v"),
    "objects": Stroke((0, (8, 1.2, 1, 1.2)), 1.3, "d"),
    "gloo": Stroke((0, (6, 2.4)), 1.0, "p"),
    "torch": Stroke((0, (2, 1)), 1.3, ">"),
    "imb": Stroke((0, (9, 1.4)), 1.0, "P"),
    "threads": Stroke((0, (1, 0.8)), 1.0, "^"),
    "shared_memory": Stroke((0, (7, 1.2, 2, 1.2)), 1.0, "X"),
    "queues": Stroke((0, (3, 2.6)), 0.8, "<"),
}
"""In the order in which figures show them: what is ours first, and heavier."""
ARMS = ("#0b4f7d", "#d55e00", "#007a5a", "#b0568a", "#8a6d00", "#2b8cbe", "#4d4d4d")
"""Colours of arms beside each other, in the order in which figures show them."""
MARKERS = "osD^vPX"
"""Marks beside those colours, of series that have no look of their own."""
BOUND_LINE: Any = (0, (1, 1.4))

_TICKS: dict[str, Any] = {
    "labelsize": TEXT_POINTS,
    "color": MUTED,
    "labelcolor": INK,
    "major.width": 0.6,
    "minor.width": 0.4,
    "major.size": 2.5,
    "minor.size": 1.5,
    "major.pad": 2.0,
}
_SETTINGS: dict[str, Any] = {
    **{f"{axis}tick.{key}": value for axis in "xy" for key, value in _TICKS.items()},
    "font.family": "DejaVu Sans",
    "font.size": TEXT_POINTS,
    "axes.titlesize": TEXT_POINTS,
    "axes.labelsize": TEXT_POINTS,
    "legend.fontsize": TEXT_POINTS,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "axes.labelpad": 2.0,
    "lines.linewidth": 1.0,
    "lines.markersize": 2.8,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "hbmcomm",
    "pdf.fonttype": 42,
    "axes.formatter.use_locale": False,
    "text.parse_math": False,
}

PRINT_FONT = "STIXGeneral"
"""Matplotlib ships it; it looks like the Times of most papers, and PDF files embed it."""
PRINT_POINTS = 8.0

_PRINTED: dict[str, Any] = {
    "font.family": PRINT_FONT,
    **{key: PRINT_POINTS for key, value in _SETTINGS.items() if value == TEXT_POINTS},
}


def look(kind: str) -> Look:
    """The look of a kind; one that has none of its own looks like ordinary ink."""
    return KINDS.get(kind, Look(INK, "*"))


def series(place: int) -> Look:
    """The look of a figure's series, by its place among them."""
    return Look(ARMS[place % len(ARMS)], MARKERS[place % len(MARKERS)])


def stroke(transport: str) -> Stroke:
    """The line and mark of a transport; one that has none of its own is dotted."""
    return TRANSPORTS.get(transport, Stroke(":", 1.0, "*"))


def style(*, printed: bool = False) -> AbstractContextManager[None]:
    """Draw in our style: matplotlib's own defaults plus ours, whatever the user's settings say.

    Args:
        printed: for a paper, where a caption below the figure has the words; else for a page.
    """
    return matplotlib.style.context(["default", _SETTINGS | (_PRINTED if printed else {})])


def page_inches() -> float:
    """Width of figures that are drawn now."""
    return COLUMN_INCHES if is_printed() else SCREEN_INCHES


def text_points() -> float:
    """Size of ordinary text in figures that are drawn now."""
    return float(matplotlib.rcParams["font.size"])


def is_printed() -> bool:
    """Whether figures are now drawn for a paper."""
    return bool(matplotlib.rcParams["font.family"] == [PRINT_FONT])
