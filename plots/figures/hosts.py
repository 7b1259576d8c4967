"""Allreduces between hosts: measured times, what models say of them, and of many more hosts."""

import pandas as pd

from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.cost_of_links import ALGORITHMS, on_more_hosts
from experiments.analysis.selection import at, in_order, rows
from experiments.model.quantities import bytes_text, seconds_text
from plots.layout.figure_layout import Drawing, sheet
from plots.layout.labels import MPIS, mpi_name
from plots.layout.marks import counts_axis, measured, seconds_axis, series_handles
from plots.layout.style import series

NAME = "more-hosts"
TITLE = "Allreduce between hosts, by algorithm"


def more_hosts(evaluation: Evaluation, most: int) -> list[Drawing]:
    """One drawing per MPI: a panel per message length, a line per algorithm.

    Args:
        most: hosts that the lines reach to.
    """
    frame = on_more_hosts(evaluation, most)
    return [_drawing(mpi, at(frame, mpi=mpi), evaluation) for mpi in in_order(frame["mpi"], MPIS)]


def _drawing(mpi: str, lines: pd.DataFrame, evaluation: Evaluation) -> Drawing:
    times = at(evaluation.times, mpi=mpi)
    algorithms = in_order(lines["transport"], ALGORITHMS)
    every = sorted(set(lines["bytes"]))
    sizes = sorted({every[0], every[len(every) // 2], every[-1]})
    page = sheet(
        TITLE,
        f"{mpi_name(mpi)}, {evaluation.machine.name}, a rank on each",
        panel_height=1.15,
        row_heads=[bytes_text(size) for size in sizes],
        legend=series_handles(algorithms),
        legend_columns=3,
        notes=[
            "Marks: measured, on hosts that share CPUs; filled: the half that models are fitted "
            "on. Lines: models of hosts with CPUs of their own."
        ],
        left=0.55,
        shared=False,
    )
    for axes, size in zip(page.flat(), sizes, strict=True):
        for place, name in enumerate(algorithms):
            line, timed = (at(frame, bytes=size, transport=name) for frame in (lines, times))
            look = series(place)
            axes.plot(line["hosts"], line["seconds"], color=look.colour, linewidth=0.9, zorder=2)
            measured(axes, timed, "ranks", look)
        counts_axis(axes)
        seconds_axis(axes, multiples=False)
    page.panels[-1][0].set_xlabel("hosts")
    last = lines[lines["hosts"] == lines["hosts"].max()]
    sentences = [
        f"{row.transport}, {bytes_text(row.bytes)}, {row.hosts} hosts: {seconds_text(row.seconds)}."
        for row in rows(last[last["bytes"].isin(sizes)])
    ]
    return Drawing(
        NAME,
        f"-{mpi}",
        f"{TITLE}, measured and by cost models",
        "Time of an allreduce against hosts, by algorithm: median over launches of the launch's "
        "median, and the alpha-beta-gamma models that are fitted on every other cell. Both axes "
        "are logarithmic.",
        "Line charts of time against hosts, by models: " + " ".join(sentences),
        page,
    )
