"""What a figure shows, as its tests read it."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style

Figure = Callable[[Any], Sequence[Drawing | Skipped]]


def drawn(figure: Figure, campaign: Any, *, printed: bool = False) -> list[Drawing]:
    """The drawings of a figure, without what it leaves out."""
    with style(printed=printed):
        return [drawing for drawing in figure(campaign) if isinstance(drawing, Drawing)]


def only(figure: Figure, campaign: Any) -> Drawing:
    """The drawing of a figure that has one and leaves nothing out."""
    with style():
        (drawing,) = figure(campaign)
    assert isinstance(drawing, Drawing)
    return drawing


def reason(figure: Figure, campaign: Any) -> str:
    """Why a figure is left out."""
    (left_out,) = figure(campaign)
    assert isinstance(left_out, Skipped)
    return left_out.reason


def marks(shown: Drawing | Axes) -> list[Line2D]:
    """The lines that hold points, not those that join them."""
    panels = shown.figure.axes if isinstance(shown, Drawing) else [shown]
    lines = [line for axes in panels for line in axes.get_lines()]
    return [line for line in lines if line.get_marker() not in ("None", "")]


def legend(drawing: Drawing) -> list[str]:
    """The entries of its legends."""
    return [text.get_text() for box in drawing.figure.legends for text in box.get_texts()]


def message(drawing: Drawing) -> str:
    """What is written around the panels, in one line."""
    return " ".join(text.get_text() for text in drawing.figure.texts).replace("\n", " ")
