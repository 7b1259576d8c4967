"""The ratio axis of the container figure: its ends, its scale and its ticks."""

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from plots.layout.labels import bytes_text
from plots.layout.marks import even_ticks, ratio_axis

MOST = 2.0
"""A plainly logarithmic axis ends at this ratio at the latest, so that 2 % can be seen."""
NEAR = 0.05
"""Where medians are beyond it, the axis is linear within about this of 1 and logarithmic beyond."""
TICKS = (1.0, 10.0, 100.0, 2.0, 0.5, 1.4, 0.7, 1.2, 0.8, 1.1, 0.9, 0.1, 1000.0)
ROOM = 0.2  # of such an axis, between two ticks


class Sight(NamedTuple):
    """What all panels share: sizes, kinds, the ends of the ratio axis, and whether it is stretched
    around 1."""

    sizes: list[int]
    kinds: list[str]
    low: float
    high: float
    stretched: bool


def ends(frame: pd.DataFrame, floor: float) -> tuple[float, float, bool]:
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
    near = strays[far.transform("median") <= math.log(MOST)]
    least = max(1.06, 1.05 / (1 - floor) if floor < 0.5 else 1.06)
    reach = float(near.quantile(0.9)) if len(near) else math.log(MOST)
    return min(MOST, max(least, math.exp(1.12 * reach)))


def draw_axes(panels: list[list[Axes]], sight: Sight) -> None:
    """Set the axes that all panels share, and the label below the lowest ones."""
    axes = panels[0][0]
    axes.set_yticks(range(len(sight.sizes)), [bytes_text(size) for size in sight.sizes])
    axes.set_ylim(len(sight.sizes) - 0.45, -0.65)
    if sight.stretched:
        axes.set_xscale("function", functions=(_stretch, _shrink))
        ratio_axis(axes.xaxis, _ticks(sight), unit="")
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


def _ticks(sight: Sight) -> list[float]:
    """As many of TICKS, in their order, as are far enough apart on a stretched axis."""
    room = ROOM * (_stretch(sight.high) - _stretch(sight.low))
    kept: list[float] = []
    for tick in TICKS:
        near = any(abs(_stretch(tick) - _stretch(other)) < room for other in kept)
        if sight.low <= tick <= sight.high and not near:
            kept.append(tick)
    return sorted(kept)
