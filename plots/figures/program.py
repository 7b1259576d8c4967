"""What a container costs a user's program: for each environment its ratio and its seconds."""

import math

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from experiments.analysis.program_cost import ArmCost, ProgramCost
from experiments.model.quantities import bound_text, percent_text, ratio_text, seconds_text
from plots.layout.figure_layout import Drawing, sheet
from plots.layout.marks import marks, ratio_axis, ratio_ticks
from plots.layout.style import BAND, MUTED, PARTIES, style

NAME = "program"
TITLE = "Time of the program by environment"
WORK, IN_MPI = PARTIES["openmpi"].colour, PARTIES["direct"].colour
_ROW = 0.26  # inches


def drawing(cost: ProgramCost) -> Drawing:
    """Ratios with their intervals beside seconds, split into the program's own work and MPI."""
    with style():
        page = sheet(
            "",
            panel_height=_ROW * len(cost.costs) + 0.1,
            column_heads=[f"times as long as {cost.costs[0].arm}", "seconds"],
            legend=_legend(cost),
            left=1.35,
            shared=False,
        )
        ratios, seconds = page.panels[0]
        _ratios(ratios, cost)
        _seconds(seconds, cost)
        seconds.set_yticks([])
    return Drawing(
        NAME,
        "",
        TITLE,
        "Left: time over that in the first environment, the median over blocks with its 95 % "
        "interval; a hollow mark has too few blocks for one. Grey: what the first one has over "
        "itself, which is noise. Right: medians of seconds.",
        " ".join(_sentence(arm) for arm in cost.costs),
        page,
    )


def _ratios(axes: Axes, cost: ProgramCost) -> None:
    if math.isfinite(cost.floor):
        axes.axvspan(1 / (1 + cost.floor), 1 + cost.floor, color=BAND, lw=0, zorder=0.5)
    axes.axvline(1, color=MUTED, linewidth=0.6, zorder=1)
    ends = [1 / 1.05, 1.05]
    for row, arm in enumerate(cost.costs):
        known = math.isfinite(arm.ratio.low)
        ends += [arm.ratio.value, *((arm.ratio.low, arm.ratio.high) if known else ())]
        if known:
            axes.hlines(row, arm.ratio.low, arm.ratio.high, color=WORK, linewidth=1.6, zorder=2)
        marks(axes, [arm.ratio.value], [row], PARTIES["openmpi"], filled=known or row == 0, size=4)
    axes.set_xscale("log")
    low, high = min(ends) / 1.03, max(ends) * 1.03
    axes.set_xlim(low, high)
    ratio_axis(axes.xaxis, ratio_ticks(low, high))
    _rows(axes, cost)
    axes.set_yticks(range(len(cost.costs)), [arm.arm for arm in cost.costs])


def _seconds(axes: Axes, cost: ProgramCost) -> None:
    for row, arm in enumerate(cost.costs):
        work = max(0.0, arm.seconds - arm.mpi)
        axes.barh(row, work, height=0.5, color=WORK, zorder=2)
        axes.barh(row, min(arm.mpi, arm.seconds), left=work, height=0.5, color=IN_MPI, zorder=2)
    axes.set_xlim(0, max(arm.seconds for arm in cost.costs) * 1.05 or 1.0)
    axes.set_xlabel("s")
    _rows(axes, cost)


def _rows(axes: Axes, cost: ProgramCost) -> None:
    axes.set_ylim(len(cost.costs) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _legend(cost: ProgramCost) -> list[Artist]:
    handles: list[Artist] = [Patch(color=WORK, label="its own work")]
    if any(arm.mpi for arm in cost.costs):
        handles.append(Patch(color=IN_MPI, label="calls of MPI"))
    if math.isfinite(cost.floor):
        handles.append(Patch(color=BAND, label=f"noise ±{percent_text(cost.floor)}"))
    return handles


def _sentence(arm: ArmCost) -> str:
    interval = ""
    if math.isfinite(arm.ratio.low):
        interval = f" ({bound_text(arm.ratio.low, arm.ratio.high)})"
    return (
        f"{arm.arm}: {ratio_text(arm.ratio.value)} times as long{interval}, "
        f"{seconds_text(arm.seconds)}, of which {seconds_text(arm.mpi)} in MPI."
    )
