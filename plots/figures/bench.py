"""A bench: times of direct and its peers, and the peers' times over direct's.

As figures, as sentences and as a table.
"""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from experiments.analysis.campaign import Campaign
from experiments.analysis.peers import against_peers, noise, other_build, own, tried
from experiments.analysis.ratios import LEAST_CELLS
from experiments.analysis.selection import at, in_order, rows
from experiments.analysis.statistics import FEWEST_BLOCKS, Verdict, short_of_claim
from experiments.model.contender_names import CALLS, DIRECT, FORMS, OTHER_BUILD, SHOWN
from experiments.model.environment import NOT_EMULATED
from experiments.model.launch import NUMPY
from experiments.model.lower_bound import BARRIER
from experiments.model.mpi_settings import DEFAULT
from experiments.model.quantities import (
    NOTHING,
    bytes_text,
    counted,
    percent_text,
    ranks_text,
    ratio_text,
    seconds_text,
)
from experiments.results import recorded
from plots.layout.figure_layout import Drawing, Page, Skipped, say_instead, sheet
from plots.layout.labels import by_operation, mpi_name
from plots.layout.marks import (
    bound_handle,
    hollow,
    mark_handle,
    points,
    positive_ends,
    seconds_axis,
    size_axis,
)
from plots.layout.style import BOUND_LINE, INK, MUTED, PARTIES
from plots.tables.table import Table
from plots.text.claims import Answer

BOUND = "bound"  # drawn beside the parties
TIMES, RATIOS = "bench-times", "bench-ratios"


def ratios_name(ranks: int) -> str:
    """The drawing that compares peers with direct at this rank count."""
    return f"{RATIOS}-{ranks}-ranks"


def draw(bench: Campaign) -> list[Drawing | Skipped]:
    """Two drawings per rank count: a row of panels per operation, a column per form of call."""
    sized = bench.cells[bench.cells["operation"] != BARRIER]
    if sized.empty:
        return [Skipped(TIMES, "Times of a bench", "only operations without data were measured")]
    mine, theirs = own(sized), against_peers(sized)
    drawn: list[Drawing | Skipped] = []
    for ranks in sorted({int(row.ranks) for row in rows(mine)}):
        ours, others = (at(frame, ranks=ranks) for frame in (mine, theirs))
        drawn.append(_times(bench, ours, others, ranks))
        drawn.append(_ratios(bench, others, ranks))
    return drawn


def _times(bench: Campaign, mine: pd.DataFrame, theirs: pd.DataFrame, ranks: int) -> Drawing:
    bound = mine.assign(peer=BOUND, seconds=mine["seconds"] * mine["share"])
    frame = pd.concat([mine.assign(peer=DIRECT), theirs, bound], ignore_index=True)
    frame = frame.assign(value=frame["seconds"], low=frame["low_s"], high=frame["high_s"])
    page = _grid(
        bench,
        frame,
        f"Time of a collective, {ranks_text(ranks)}",
        [
            "Median over launches with its 95 % interval. Dotted: the time that the bytes take at "
            "the rate at which all ranks copy at once.",
            *hollow(frame[frame["peer"] != BOUND]),
        ],
    )
    sentences = " ".join(
        f"{CALLS[row.operation]}, {row.form}, {bytes_text(row.bytes)}: {seconds_text(row.seconds)}."
        for row in rows(mine.sort_values(["operation", "form", "bytes"]))
    )
    return Drawing(
        f"{TIMES}-{ranks}-ranks",
        "",
        f"Times of direct and its peers, {ranks_text(ranks)}",
        "Each point is the median over launches; all parties of a launch take turns, those of this "
        "build over the same buffers. Both axes are logarithmic.",
        f"Line charts of time against message size. Direct: {sentences}",
        page,
    )


def _ratios(bench: Campaign, theirs: pd.DataFrame, ranks: int) -> Drawing:
    frame = theirs.assign(value=theirs["ratio"])
    paired = "Paired within a launch; median over blocks with its exact 95 % interval."
    notes = [paired, *hollow(frame)]
    page = _grid(bench, frame, f"Peer's time over direct's, {ranks_text(ranks)}", notes)
    for axes in page.flat():
        axes.axhline(1, color=MUTED, linewidth=0.8, zorder=1)
    first = page.panels[0][0].yaxis
    first.set_major_locator(LogLocator(10, subs=(1, 3), numticks=20))
    first.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}×"))
    best = frame[frame["best"]].sort_values(["operation", "form", "bytes"])
    sentences = " ".join(
        f"{CALLS[row.operation]}, {row.form}, {bytes_text(row.bytes)}: "
        f"{ratio_text(row.ratio)} against {mpi_name(row.peer)}"
        f"{'' if row.setting == DEFAULT else f' ({row.setting})'}."
        for row in rows(best)
    )
    return Drawing(
        ratios_name(ranks),
        "",
        f"Peers over direct, {ranks_text(ranks)}",
        "Above 1 direct is faster. Each ratio is of times measured in turn in one launch; others "
        "than MPIs are shown beside the MPI with which they did best.",
        f"Line charts of ratios against message size. Best MPI: {sentences}",
        page,
    )


def _grid(bench: Campaign, frame: pd.DataFrame, heading: str, notes: list[str]) -> Page:
    """The page of one figure with its panels; frame has peer, value, low, high and bytes."""
    operations = in_order(frame["operation"], CALLS)
    forms = in_order(frame["form"], FORMS)
    asked = bench.experiment
    if asked.launches.tuned:
        notes = [
            *notes,
            "Each MPI in the setting that did best in the cell, of "
            f"{tried(bench.cells)} settings of all MPIs.",
        ]
    machine = recorded.meaning([bench.header["machine"].get("emulated", NOT_EMULATED)])
    page = sheet(
        heading,
        ("NumPy arrays" if NUMPY in asked.factors.buffers else "arrays of the arena")
        + f", {asked.measurement.cadence}, float32, warm cache",
        panel_height=1.2,
        column_heads=[f"{form} calls" if len(forms) < 4 else form for form in forms],
        row_heads=[CALLS[operation] for operation in operations],
        legend=_legend(bench, set(frame["peer"])),
        legend_columns=2 if OTHER_BUILD in set(frame["peer"]) else 4,
        alerts=[machine] if machine else [],
        notes=notes,
    )
    for axes, operation, form in page.by(operations, forms):
        here = at(frame, operation=operation, form=form)
        if here.empty:
            say_instead(axes, "Nobody has this call.")
        for party in (*SHOWN, DIRECT):
            points(axes, at(here, peer=party), "value", PARTIES[party])
        bound = at(here, peer=BOUND).sort_values("bytes")
        axes.plot(bound["bytes"], bound["value"], color=INK, linestyle=BOUND_LINE, linewidth=0.9)
    seconds_axis(page.panels[0][0])
    least, most = positive_ends(frame[["value", "low", "high"]])
    page.panels[0][0].set_ylim(min(least / 1.6, 0.9 if least > 0.5 else 1), most * 1.6)
    if len(forms) < 3:
        size_axis(page, frame["bytes"], 3)
    else:
        size_axis(page, frame["bytes"], 2, "size per rank")
        for axes in page.panels[-1]:
            _labels_within(axes)
    return page


def _legend(bench: Campaign, peers: set[str]) -> list[Line2D]:
    """An entry for each party that is drawn."""
    names = {OTHER_BUILD: other_build(bench)}
    parties = [party for party in (DIRECT, *SHOWN) if party in peers]
    handles = [mark_handle(PARTIES[party], names.get(party, mpi_name(party))) for party in parties]
    return [*handles, *([bound_handle()] if BOUND in peers else [])]


def _labels_within(axes: Axes) -> None:
    """The labels of both ends of the x axis between these: those of the next panel are near."""
    labels = axes.get_xticklabels()
    if len(labels) > 1:
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")


def marks(bench: Campaign) -> list[str]:
    """What a reader must know before the first figure, a few words each."""
    floor = noise(bench.cells)
    if math.isnan(floor):
        return ["The noise floor is unknown"]
    return [f"Direct against itself strays {percent_text(floor)} at most"]


def answers(bench: Campaign) -> list[Answer]:
    """One for each operation, form of call and rank count that an MPI took part in."""
    best = rows(against_peers(bench.cells).query("best"))
    series = dict.fromkeys((row.operation, row.form, row.ranks) for row in best)
    order = [*CALLS]
    return [
        Answer(
            f"How much longer does the best MPI take than direct? {CALLS[key[0]]}, {key[1]} "
            f"calls, {ranks_text(key[2])}",
            " ".join(_sentences([r for r in best if (r.operation, r.form, r.ranks) == key])),
            figure="" if key[0] == BARRIER else ratios_name(key[2]),
        )
        for key in sorted(series, key=lambda key: order.index(key[0]))
    ]


def _sentences(best: list[Any]) -> Iterator[str]:
    near, far = (pick(best, key=lambda row: row.ratio) for pick in (min, max))
    yield f"It takes {_cell(near)}{f' to {_cell(far)}' if len(best) > 1 else ''}."
    differing = [row for row in best if row.verdict == Verdict.DIFFERS]
    if lost := [row for row in differing if row.ratio < 1]:
        yield f"It is faster than direct beyond the noise floor in {counted(len(lost), 'cell')}."
    if unknown := [bytes_text(row.bytes) for row in best if math.isnan(row.floor)]:
        yield (
            f"Direct was measured twice in fewer than {LEAST_CELLS} cells of a size like "
            f"{', '.join(dict.fromkeys(unknown))}, so the noise floor there is unknown and nothing "
            "differs: measure more sizes or operations."
        )
    if differing and (short := short_of_claim(min(row.blocks for row in differing))):
        yield short
    if any(math.isnan(row.low) for row in best):
        yield f"There is no interval below {FEWEST_BLOCKS} blocks."


def _cell(row: Any) -> str:
    """ "1.55 times as long (impi sm, 8 B)"."""
    setting = "" if row.setting == DEFAULT else f" {row.setting}"
    size = f", {bytes_text(row.bytes)}" if row.bytes else ""
    return f"{ratio_text(row.ratio)} times as long ({row.peer}{setting}{size})"


def table(bench: Campaign) -> Table:
    """Every peer's ratio in every cell; the CSV has the times too."""
    compared = against_peers(bench.cells)
    labels = {OTHER_BUILD: other_build(bench)}
    peers = [peer for peer in SHOWN if peer in set(compared["peer"])]
    cells = compared.pivot(
        index=["operation", "form", "ranks", "bytes"], columns="peer", values="ratio"
    )[peers].sort_index(key=by_operation)
    return Table(
        name="peers",
        title="Peers over direct",
        caption=(
            "The peer's time over direct's, paired within each launch, the median over launches; "
            "an MPI in the setting that did best. Above 1 direct is faster."
        ),
        data=compared,
        head=["operation", "calls", "ranks", "message per rank"]
        + [labels.get(peer, peer) for peer in peers],
        rows=[
            [CALLS[row[0]], row[1], str(row[2]), bytes_text(row[3]) if row[3] else NOTHING]
            + [ratio_text(ratio) for ratio in ratios]
            for row, *ratios in cells.itertuples()
        ],
        numeric=[False, False, True, True, *([True] * len(peers))],
        factors=4,
    )
