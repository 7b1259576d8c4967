"""What figures of cost models share: marks of measured times, and axes of many machines."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from plots.layout.labels import tick_text
from plots.layout.style import PAPER

MARKERS = "osD^vPX"


def measured(axes: Axes, frame: pd.DataFrame, across: str, colour: str, place: int) -> None:
    """Marks of measured times: filled, of the half that models are fitted on; hollow, the others.

    Args:
        frame: columns `seconds`, `fitted` and the one that is named by `across`.
        place: of the series, which gives its marker.
    """
    for fitted, face in ((True, colour), (False, PAPER)):
        part = frame[frame["fitted"] == fitted]
        axes.plot(
            part[across],
            part["seconds"],
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            markersize=2.8,
            markerfacecolor=face,
            markeredgecolor=colour,
            markeredgewidth=0.7,
            zorder=3,
        )


def seconds_axis(axes: Axes) -> None:
    """A logarithmic axis of times, with a label at each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def counts_axis(axes: Axes) -> None:
    """A logarithmic axis of numbers of machines."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
