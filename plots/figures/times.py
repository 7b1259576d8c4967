"""Figure 1: time of a collective against message size, kinds and transports side by side."""

import pandas as pd
from matplotlib.axes import Axes

from experiments.analysis.campaign import BASELINES, REFERENCE, Campaign, absent_containers
from experiments.analysis.selection import at, in_order, rows, usual
from experiments.model.arms import HOST
from experiments.model.quantities import bytes_text, ranks_text, seconds_text
from experiments.model.workloads import COMPUTING, WORKLOADS
from plots.layout import marks
from plots.layout.facets import Part, parts, some_arms
from plots.layout.figure_layout import Drawing, Figure, say_instead, sheet
from plots.layout.labels import OPERATIONS, operation_name, short_arm
from plots.layout.style import BOUND_LINE, KINDS, TRANSPORTS, is_printed, look, stroke
from plots.tables.listing import TIMES, Listing

NAME = "times"
TITLE = "Time against message size"
MOST_ARMS = 2
"""Panels side by side that one column of a paper holds."""

CAPTION = (
    "Each point is the median over launches of the launch's median time, with its 95 % "
    "nonparametric interval; the time of one operation is the maximum over ranks. All "
    "transports of a launch work on the same arrays. Lines connect sizes only. Isolated: "
    "ranks are synchronised before each operation. Dotted: the operation's traffic over "
    "the copy bandwidth of the same launch, measured while all ranks copy messages of that "
    "size. An operation can be faster than this line if its buffers fit into a cache and "
    "those of the copies do not. Both axes are logarithmic; series are set apart sideways so "
    "that none hides another."
)


def needs(campaign: Campaign) -> str:
    """A campaign needs a cell."""
    return "no cell was measured" if campaign.times.empty else ""


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count: a row of panels per operation, a column per arm."""
    frame = campaign.times[~campaign.times["operation"].isin(WORKLOADS)]
    frame = frame[~frame["arm"].isin(BASELINES)]  # baselines.py draws those
    return [_drawing(part, campaign.unmeasured) for part in parts(frame)]


def _drawing(part: Part, unmeasured: dict[str, str]) -> Drawing:
    frame = usual(part.frame).rename(columns={"low_s": "low", "high_s": "high"})
    # the reference's calls are the host's own, but for Python: another line in the same panel
    frame = frame.assign(arm=frame["arm"].replace(REFERENCE, HOST))
    transports = set(frame["transport"])
    operations = in_order(frame["operation"], OPERATIONS)
    arms, others = some_arms(frame["arm"], MOST_ARMS)
    frame = frame[frame["arm"].isin(arms)]
    absent = [level for level in (HOST, *absent_containers(unmeasured)) if level in unmeasured]
    absent = [level for level in absent if level not in arms][: MOST_ARMS - len(arms)]
    columns = arms + absent
    page = sheet(
        f"Time per operation, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=1.5 if is_printed() else 1.15,
        column_heads=[short_arm(arm) for arm in columns],
        row_heads=[operation_name(operation) for operation in operations],
        legend=[
            *marks.kind_handles(frame, marks=len(transports) < 2),
            marks.bound_handle(),
            *marks.transport_handles(frame["transport"]),
        ],
        alerts=[f"Not measured. {t}: {unmeasured[t]}" for t in TRANSPORTS if t in unmeasured],
        notes=[
            " ".join(("Median of launch medians with its 95 % interval.", *marks.hollow(frame))),
            *_grouped(frame),
            *others,
        ],
    )
    for axes, operation, arm in page.by(operations, columns):
        mine = at(frame, operation=operation, arm=arm)
        if arm in absent:
            say_instead(axes, f"{arm}: {unmeasured[arm]}")
        elif mine.empty:
            say_instead(axes, "No cell of it is finished.")
        else:
            _panel(axes, mine, transports)
    marks.size_axis(page, frame["bytes"], 3 if len(columns) > 1 else 6)
    first = page.panels[0][0]
    marks.seconds_axis(first)
    least, most = marks.positive_ends(frame[["median_s", "low", "high", "bound_s"]])
    first.set_ylim(least / 1.6, most * 2.2)
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        CAPTION,
        _description(frame, part),
        page,
    )


def _grouped(frame: pd.DataFrame) -> list[str]:
    """Says which points are of several operations in one interval, too short to be timed alone."""
    grouped = frame[frame["group"] > 1]
    if grouped.empty:
        return []
    return [
        f"{len(grouped)} of {len(frame)} points, up to {bytes_text(grouped['bytes'].max())}, "
        f"timed back to back in groups of up to {int(grouped['group'].max())}; see the table."
    ]


def _panel(axes: Axes, frame: pd.DataFrame, transports: set[str]) -> None:
    kinds = in_order(frame["kind"], KINDS)
    for index, kind in enumerate(kinds):
        mine = at(frame, kind=kind)
        shift = marks.dodge(index, len(kinds))
        for transport in in_order(mine["transport"], TRANSPORTS):
            timed, own = at(mine, transport=transport), marks.look_of(kind, transport, transports)
            marks.points(axes, timed, "median_s", own, stroke(transport), shift=shift)
        bound = mine.groupby("bytes")["bound_s"].median().dropna()
        axes.plot(
            bound.index.to_numpy(dtype=float) * shift,
            bound.to_numpy(dtype=float),
            color=look(kind).colour,
            linestyle=BOUND_LINE,
            linewidth=0.9,
            zorder=1.5,
        )


def _description(frame: pd.DataFrame, part: Part) -> str:
    """The ends of every line in words."""
    lines = []
    for (arm, operation, transport, kind), mine in frame.groupby(
        ["arm", "operation", "transport", "kind"], sort=True
    ):
        ends = mine.sort_values("bytes").iloc[[0, -1]]
        span = " to ".join(
            f"{seconds_text(end.median_s)} at {bytes_text(end.bytes)}" for end in rows(ends)
        )
        lines.append(f"{operation_name(str(operation))}, {transport}, {kind}, {arm}: {span}.")
    return f"Line charts of time against message size{part.where}. {' '.join(lines)}"


TABLE = Listing(
    "times",
    "Times",
    "Median over launches of the launch median, with its 95 % nonparametric interval. p95 and "
    "p99: medians over launches too; a launch of fewer than 100 iterations has none. Memory "
    "bound: the least time that the copy bandwidth allows. Skew: from the first rank's begin "
    "after the barrier to the last one's. Bus: the bus bandwidth, which is a rank's largest "
    "buffer over the median, with r ranks times 2(r - 1)/r for Allreduce and (r - 1)/r for "
    "Allgather and Reduce_scatter_block. n: the iterations of all launches. Group: how many "
    "operations an iteration times back to back, at most.",
    lambda campaign: campaign.times[~campaign.times["operation"].isin(COMPUTING)],
    TIMES,
)
FIGURE = Figure(NAME, TITLE, draw, needs)
