"""Figure 5: MPI from Python beside Python's own means, threads and multiprocessing."""

from collections.abc import Iterator

import pandas as pd

from experiments.analysis.campaign import BASELINE, BASELINES, Campaign
from experiments.analysis.selection import at, in_order, usual
from experiments.model.arms import HOST
from experiments.model.quantities import ranks_text
from experiments.programs.imb import DIFFERENCES
from plots.figures.times import NAME as TIMES
from plots.layout.facets import Part, parts
from plots.layout.figure_layout import Drawing, Figure, sheet
from plots.layout.labels import OPERATIONS, operation_name, ratios_in_words, transport_name
from plots.layout.marks import hollow, points, seconds_axis, size_axis, transport_handles
from plots.layout.style import ARMS, TRANSPORTS, Look, stroke
from plots.tables.listing import Listing
from plots.text import claims
from plots.text.claims import Answer, slowdown

NAME = "baselines"
TITLE = "Python without MPI"


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per MPI and rank count: a row of panels per operation, a line per way."""
    if campaign.baselines.empty:
        return []
    frame = campaign.times[campaign.times["arm"].isin((HOST, *BASELINES))]
    frame = usual(at(frame, kind=BASELINE))
    frame = frame[frame["operation"].isin(set(campaign.baselines["operation"]))]
    return [_drawing(part, campaign) for part in parts(frame)]


def _drawing(part: Part, campaign: Campaign) -> Drawing:
    frame = part.frame.rename(columns={"low_s": "low", "high_s": "high"})
    operations = in_order(frame["operation"], OPERATIONS)
    transports = in_order(frame["transport"], TRANSPORTS)
    colours = dict(zip(transports, ARMS, strict=False))
    page = sheet(
        f"{TITLE}, {ranks_text(part.ranks)}",
        of=frame,
        panel_height=1.2,
        row_heads=[operation_name(operation) for operation in operations],
        legend=transport_handles(transports, colours),
        notes=[" ".join(("Median of launch medians with its 95 % interval.", *hollow(frame)))],
    )
    for (axes,), operation in zip(page.panels, operations, strict=True):
        for transport in transports:
            mine = at(frame, operation=operation, transport=transport)
            line = stroke(transport)
            points(axes, mine, "median_s", Look(colours[transport], line.marker), line)
    size_axis(page, frame["bytes"], 6)
    seconds_axis(page.panels[0][0])
    return Drawing(
        NAME,
        part.name,
        f"{TITLE}{part.where}",
        "Time of a collective over NumPy arrays: by transports of hbmcomm between the ranks of an "
        "MPI, by threads of one process, and by multiprocessing, over its shared memory and "
        "through its queues. All took turns on the same CPUs. Each point is the median over "
        "launches of the launch's median time; the time of one operation is the maximum over "
        "ranks after a barrier. Both axes are logarithmic.",
        _description(campaign.baselines, part),
        page,
    )


def _description(ratios: pd.DataFrame, part: Part) -> str:
    mine = ratios[(ratios["ranks"] == part.ranks) & ratios["mpi"].isin(set(part.frame["mpi"]))]
    ends = mine[mine["bytes"].isin((mine["bytes"].min(), mine["bytes"].max()))]
    return (
        f"Line charts of time against message size{part.where}. Over the MPI calls whose turns "
        f"they took: {ratios_in_words(ends, 'operation', 'transport', 'bytes')}"
    )


def answers(campaign: Campaign) -> Iterator[Answer]:
    """What Python costs beside C, and each of Python's own means beside MPI."""
    if not campaign.python.empty:
        question = "What does Python itself cost?"
        yield Answer(question, claims.python(campaign), points=DIFFERENCES, figure=TIMES)
    without = usual(campaign.baselines)
    for name in in_order(without.get("transport", []), TRANSPORTS):
        question = f"Without MPI ({transport_name(name)}), how much longer does it take?"
        done = f"with {name} as with the host's MPI calls"
        sentence = slowdown(at(without, transport=name), campaign, done)
        yield Answer(question, sentence, figure=NAME)


TABLE = Listing(
    "baselines",
    "Python without MPI",
    f"Time with threads or multiprocessing of Python over time with the {HOST}'s MPI calls "
    "from Python: of buffers for threads and shared memory, of objects for queues.",
    "baselines",
)
PYTHON = Listing(
    "python",
    "Cost of Python",
    f"Time of an MPI's buffer calls from Python on the {HOST} over the same calls from C, "
    "by the Intel MPI Benchmarks (IMB-MPI1).",
    "python",
)
FIGURE = Figure(NAME, TITLE, draw)
