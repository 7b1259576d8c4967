"""What figures of cost models share: marks of measured times, and axes of many machines."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from plots.figures.panels.marks import marks
from plots.layout.style import Look


def measured(axes: Axes, frame: pd.DataFrame, across: str, look: Look) -> None:
    """Marks of measured times: filled, of the half that models are fitted on; hollow, the others.

    Args:
        frame: columns `seconds`, `fitted` and the one that is named by `across`.
    """
    for fitted in (True, False):
        part = frame[frame["fitted"] == fitted]
        marks(axes, part[across], part["seconds"], look, filled=fitted)


def counts_axis(axes: Axes) -> None:
    """A logarithmic axis of numbers of machines."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
