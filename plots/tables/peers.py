"""A bench as tables for a terminal of 80 columns, one per operation, rank count and form of call.

Of direct the time is shown, of all others the ratio alone: it is paired within a launch, and no
quotient of two medians over all launches.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from experiments.analysis.campaign import Campaign
from experiments.analysis.peers import (
    SLOWER,
    against_peers,
    noise,
    other_build,
    own,
    slower_cells,
    tried,
)
from experiments.analysis.ratios import LEAST_CELLS
from experiments.analysis.selection import rows
from experiments.analysis.statistics import FEWEST_BLOCKS, Verdict, short_of_claim
from experiments.model.contender_names import CALLS, FORMS, LACKING, OF_TORCH, OTHER_BUILD, SHOWN
from experiments.model.launch import NUMPY
from experiments.model.mpi_settings import DEFAULT
from experiments.model.quantities import (
    NOTHING,
    counted,
    percent_text,
    ratio_text,
    seconds_text,
    size_text,
)


def render(bench: Campaign) -> RenderableType:
    """All tables of a bench, how to read them, and what to know before believing them."""
    mine, theirs = own(bench.cells), against_peers(bench.cells)
    return Group(*_tables(mine, theirs), *_legend(bench, theirs))


def _tables(mine: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[RenderableType]:
    shown = {(int(row.ranks), str(row.operation), str(row.form)) for row in rows(mine)}
    for ranks, operation, form in product(sorted(set(mine["ranks"])), CALLS, FORMS):
        if (ranks, operation, form) not in shown:
            continue
        ours, others = (_only(frame, ranks, operation, form) for frame in (mine, theirs))
        title = f"{CALLS[operation]}, {ranks} ranks, {form} calls"
        of_torch = others["peer"].isin(OF_TORCH)
        if others.empty or not of_torch.all():
            yield _table(title, ours, others[~of_torch])
        if of_torch.any():  # all peers would not fit side by side
            yield _table(f"{title}: torch", ours, others[of_torch], mpis=False)
        yield from _best_settings(others)
        yield Text()


def _only(frame: pd.DataFrame, ranks: int, operation: str, form: str) -> pd.DataFrame:
    here = (frame["ranks"] == ranks) & (frame["operation"] == operation) & (frame["form"] == form)
    return frame[here].sort_values("bytes", kind="stable")


def _table(title: str, mine: pd.DataFrame, theirs: pd.DataFrame, mpis: bool = True) -> Table:
    peers = [peer for peer in SHOWN if peer in set(theirs["peer"])]
    table = Table(
        *(_numbers("bytes"), _numbers("direct"), _numbers("of\nbound")),
        *(_numbers(peer.replace("-", "\n")) for peer in peers),
        *([_numbers("95 % of *")] if mpis else []),
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for row in rows(mine):
        cell = theirs[theirs["bytes"] == row.bytes]
        by_peer = {contender.peer: contender for contender in rows(cell)}
        table.add_row(
            size_text(int(row.bytes)) if row.bytes else NOTHING,
            seconds_text(float(row.seconds)),
            percent_text(float(row.share), 0),
            *(_peer(by_peer.get(peer)) for peer in peers),
            *([_interval(cell[cell["best"]])] if mpis else []),
        )
    return table


def _numbers(name: str) -> Column:
    """A column of numbers."""
    return Column(name, justify="right", no_wrap=True)


def _peer(row: Any) -> Text:
    """ "1.52* " where it is the best MPI of the cell."""
    if row is None:
        return Text(f"{NOTHING} ")
    style = "bold" if row.best else ""
    return Text(ratio_text(row.ratio) + ("*" if row.best else " "), style=style)


def _interval(best: pd.DataFrame) -> Text:
    """ "1.40–1.61", green where direct is faster beyond the noise floor, red where slower."""
    if best.empty or not math.isfinite(best.iloc[0]["low"]):
        return Text(NOTHING)
    row = best.iloc[0]
    differs = row["verdict"] == Verdict.DIFFERS
    style = ("green" if row["ratio"] > 1 else "red") if differs else ""
    return Text(f"{ratio_text(row['low'])}–{ratio_text(row['high'])}", style=style)


def _best_settings(theirs: pd.DataFrame) -> Iterator[RenderableType]:
    """The setting of the best MPI in each cell, where it is none as it comes."""
    best = theirs[theirs["best"] & (theirs["setting"] != DEFAULT)]
    shown = [f"{size_text(int(row.bytes))} {row.peer} {row.setting}" for row in rows(best)]
    if shown:
        yield Text(f"* in another setting than its default: {', '.join(shown)}", style="dim")


def _legend(bench: Campaign, theirs: pd.DataFrame) -> Iterator[RenderableType]:
    factors, measurement = bench.experiment.factors, bench.experiment.measurement
    where = "ordinary NumPy arrays" if NUMPY in factors.buffers else "arrays of the arena"
    of_arms = bench.cells.groupby(["ranks", "arm"])["block"].nunique()
    blocks = int(of_arms.max())
    few = blocks < FEWEST_BLOCKS
    fewer = [
        f"{arm} with {ranks} ranks: {count}"
        for ranks, arm, count in of_arms[of_arms < blocks].reset_index().itertuples(index=False)
    ]
    lines = [
        f"direct: its median time over launches, of the slowest rank, {where}, "
        f"{measurement.cadence} cadence. Others: their time over direct's in the same launch, the "
        "median over launches; above 1 direct is faster. *: the best MPI.",
        *_of_others_than_mpis(theirs),
        "Of bound: the time that the operation's bytes take at the rate at which all ranks copy at "
        "once, over direct's time. In caches it can exceed 100 %: the copy reads and writes other "
        "buffers on each rank, and what several ranks read at once is fetched once.",
        counted(blocks, "block")
        + (f" (fewer of {', '.join(fewer)})" if fewer else "")
        + (f": no interval below {FEWEST_BLOCKS}" if few else "; 95 %: interval of the ratio at *")
        + f". {_noise(bench.cells)}",
        *_of_settings(bench),
        *_of_other_build(bench, theirs),
        *(f"Note: {note}" for note in bench.warnings),
    ]
    yield from (Text(line) for line in lines)


def _noise(cells: pd.DataFrame) -> str:
    """The noise floor, and what it lets the colours claim."""
    floor = noise(cells)
    if math.isnan(floor):
        return (
            f"Direct was measured twice in fewer than {LEAST_CELLS} cells of each band of sizes: "
            "the noise floor is unknown and nothing differs."
        )
    return (
        f"Direct against itself strays {percent_text(floor)} at most. An interval is coloured "
        "where one that holds for all cells at once is beyond the floor of its sizes: green, "
        "direct is faster; red, slower."
    )


def _of_others_than_mpis(theirs: pd.DataFrame) -> Iterator[str]:
    if several := [peer for peer in LACKING if peer in set(theirs["peer"])]:
        yield f"{', '.join(several)}: beside the MPI with which it did best in the cell."


def _of_settings(bench: Campaign) -> Iterator[str]:
    if bench.experiment.launches.tuned:
        yield (
            "Each MPI is shown in the setting that did best in the cell; "
            f"{tried(bench.cells)} settings were tried in all. The lowest of many medians is low "
            "by chance too: that counts against direct."
        )


def _of_other_build(bench: Campaign, compared: pd.DataFrame) -> Iterator[str]:
    """One line: how direct compares with another build of itself over all cells."""
    builds = compared[compared["peer"] == OTHER_BUILD]
    ratios, surely = builds["ratio"], slower_cells(compared)
    if ratios.empty:
        return
    slower = [
        f"{row.form} {CALLS[row.operation]} {size_text(int(row.bytes))} with {row.ranks} ranks "
        f"{ratio_text(row.ratio)}"
        for row in rows(surely)
    ]
    short = "" if surely.empty else short_of_claim(int(surely["blocks"].min()))
    yield (
        f"Other build: {other_build(bench)}, over direct in all launches: median "
        f"{ratio_text(ratios.median())}, lowest {ratio_text(ratios.min())} of "
        f"{counted(len(ratios), 'cell')}; below {SLOWER} with the whole interval and beyond the "
        f"noise floor: {'; '.join(slower) or 'none'}." + (f" {short}" if short else "")
    )
