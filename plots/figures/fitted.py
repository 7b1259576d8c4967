"""Measured times of collectives, and what a cost model of them says."""

import pandas as pd

from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.selection import at, in_order, rows
from experiments.model.quantities import percent_text, ranks_text
from plots.layout.figure_layout import Drawing, sheet
from plots.layout.labels import MPIS, OPERATIONS, mpi_name, operation_name, transport_name
from plots.layout.marks import measured, seconds_axis, series_handles, size_axis
from plots.layout.style import INK, series

NAME = "model"
TITLE = "Cost model of"


def fitted(evaluation: Evaluation) -> list[Drawing]:
    """One drawing per MPI and transport that have a model: a panel per operation."""
    known = evaluation.times[evaluation.times["model"].notna()]
    return [
        _drawing(at(known, mpi=mpi, transport=transport), evaluation)
        for mpi in in_order(known["mpi"], MPIS)
        for transport in dict.fromkeys(at(known, mpi=mpi)["transport"])
    ]


def _drawing(frame: pd.DataFrame, evaluation: Evaluation) -> Drawing:
    mpi, transport = (str(frame[name].iloc[0]) for name in ("mpi", "transport"))
    operations = in_order(frame["operation"], OPERATIONS)
    counts = sorted(set(frame["ranks"]))
    page = sheet(
        f"{TITLE} {evaluation.compared} {transport}",
        f"{mpi_name(mpi)}, on {evaluation.machine.name}",
        panel_height=0.95,
        row_heads=[operation_name(name) for name in operations],
        legend=series_handles(map(ranks_text, counts)),
        legend_columns=3,
        notes=[
            "Filled marks: the half that the model is fitted on; hollow: the half that judges it. "
            "Lines: the model."
        ],
    )
    for axes, operation in zip(page.flat(), operations, strict=True):
        mine = at(frame, operation=operation).sort_values("bytes")
        for place, count in enumerate(counts):
            own, look = at(mine, ranks=count), series(place)
            axes.plot(own["bytes"], own["model"], color=look.colour, linewidth=0.9, zorder=2)
            measured(axes, own, "bytes", look)
        axes.tick_params(colors=INK)
    size_axis(page, frame["bytes"], 5)
    seconds_axis(page.panels[0][0], multiples=False)
    return Drawing(
        NAME,
        f"-{mpi}-{transport}",
        f"{TITLE} {evaluation.compared} {transport_name(transport)}, {mpi_name(mpi)}",
        "Time of a collective against message size: median over launches of the launch's median, "
        "and the alpha-beta-gamma model that is fitted on every other cell. Both axes are "
        "logarithmic.",
        _description(evaluation.errors, mpi, transport),
        page,
    )


def _description(errors: pd.DataFrame, mpi: str, transport: str) -> str:
    sentences = [
        f"{operation_name(row.operation)}: the median error of {row.cells} cells that the model "
        f"does not know is {percent_text(row.model)}."
        for row in rows(at(errors, mpi=mpi, transport=transport))
    ]
    return "Line charts of measured and modelled times against message size. " + " ".join(sentences)
