"""What a cost model says of another machine: HBM against ranks, and time against nodes."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from experiments.analysis import whatif
from experiments.analysis.cost_cells import CannotModel
from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.selection import at, in_order, rows
from experiments.model.quantities import ratio_text, seconds_text
from plots.layout import marks
from plots.layout.figure_layout import Drawing, Skipped, sheet
from plots.layout.labels import OPERATIONS, operation_name
from plots.layout.style import INK, MUTED, Look, look, series
from plots.tables.published import BCAST_16, MOST

SPEEDUP, SCALING = "what-if-speedup", "what-if-nodes"
MANY_NODES = "Allreduce on many nodes"
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (1, 1.2)))


def speedup(evaluation: Evaluation, machine: str) -> Drawing:
    """HBM against ordinary memory: a panel per placement of ranks, a line per operation.

    The paper's figures have a place beside those of its machine.
    """
    frame, subject = whatif.speedups(evaluation, machine), whatif.machine_name(machine)
    published = machine == whatif.PAPERS
    placements = list(dict.fromkeys(frame["placement"]))
    operations = in_order(frame["operation"], OPERATIONS)
    page = sheet(
        f"Speed-up of HBM on {subject}",
        "By cost models; nothing was measured there",
        panel_height=1.1,
        row_heads=[f"Ranks {name}" for name in placements],
        legend=[
            *marks.series_handles(map(operation_name, operations)),
            *([marks.mark_handle(Look(INK, "_"), "published")] if published else []),
        ],
        legend_columns=3,
        left=0.42,
    )
    for axes, placement in zip(page.flat(), placements, strict=True):
        for place, operation in enumerate(operations):
            line = at(frame, placement=placement, operation=operation)
            own = series(place)
            axes.plot(line["ranks"], line["ratio"], color=own.colour, marker=own.marker)
        if published:
            axes.plot([16, 16], [BCAST_16, MOST], color=INK, marker="_", linewidth=1.2, zorder=3)
        axes.axhline(1, color=MUTED, linewidth=0.7, zorder=1.5)
    counts, last = sorted(set(frame["ranks"])), page.panels[-1][0]
    last.set_xscale("log", base=2)
    last.set_xticks(counts, list(map(str, counts)))
    last.xaxis.set_minor_locator(NullLocator())
    last.set_xlabel("ranks")
    page.panels[0][0].yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}×"))
    return Drawing(
        SPEEDUP,
        f"-{machine}",
        f"Speed-up of HBM on {subject}, by cost models",
        "Time in ordinary memory over time in HBM of a message of 16 MiB per rank, by models that "
        "are fitted on another machine and take this machine's memory in its place.",
        _described(frame),
        page,
    )


def _described(frame: pd.DataFrame) -> str:
    sentences = [
        f"{operation_name(row.operation)}, {row.ranks} ranks {row.placement}: "
        f"{ratio_text(row.ratio)}."
        for row in rows(frame[frame["ranks"].isin((2, 16))])
    ]
    return "Line charts of the speed-up of HBM against ranks: " + " ".join(sentences)


def scaling(
    evaluation: Evaluation, machine: str, networks: Sequence[str], most: int
) -> Drawing | Skipped:
    """Time of an allreduce on up to `most` nodes: lines by network and memory, with their bands."""
    try:
        frame = whatif.scaling(evaluation, machine, networks, most)
    except CannotModel as error:  # the campaign has too few operations
        return Skipped(f"{SCALING}-{machine}", MANY_NODES, str(error))
    subject = whatif.subject(machine)
    page = sheet(
        MANY_NODES,
        f"{subject}. By cost models; nothing was measured there",
        panel_height=2.0,
        legend=[
            *marks.kind_handles(frame.assign(emulated=False), marks=False),
            *(
                Line2D([], [], color=INK, linestyle=dashes, label=network_name(network))
                for network, dashes in zip(networks, DASHES, strict=False)
            ),
        ],
        legend_columns=3,
        notes=["Band: between a tenth and nine tenths of the errors on measured times."],
    )
    axes = page.panels[0][0]
    for network, dashes in zip(networks, DASHES, strict=False):
        for kind in dict.fromkeys(frame["kind"]):
            line = at(frame, network=network, kind=kind)
            colour = look(kind).colour
            axes.plot(line["nodes"], line["seconds"], color=colour, linestyle=dashes, zorder=2)
            axes.fill_between(
                line["nodes"], line["low"], line["high"], color=colour, alpha=0.12, linewidth=0
            )
    marks.counts_axis(axes)
    marks.seconds_axis(axes, multiples=False)
    axes.set_xlabel("nodes")
    last = frame[frame["nodes"] == frame["nodes"].max()]
    sentences = [
        f"{network_name(row.network)}, {row.kind}, {row.nodes} nodes: {seconds_text(row.seconds)}."
        for row in rows(last)
    ]
    return Drawing(
        SCALING,
        f"-{machine}",
        f"{MANY_NODES}: {subject}, by cost models",
        "Time of an allreduce of all nodes: reduce and broadcast in the memory of a node, and the "
        "algorithm that takes least time between nodes. Both axes are logarithmic.",
        "Line chart of time against nodes: " + " ".join(sentences),
        page,
    )


def network_name(network: str) -> str:
    """ "100gbit" as "100 Gbit/s"."""
    return f"{network.removesuffix('gbit')} Gbit/s"
