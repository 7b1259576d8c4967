"""A bench as tables for a terminal, one per operation and rank count: a Bench in, text out."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.bench.compare import SLOWER, against_peers, noise, own, slower_cells, tried
from experiments.bench.names import CALLS, FORMS, OTHER_BUILD, SHOWN
from experiments.bench.settings import DEFAULT
from experiments.bench.store import Bench

NOTHING = "–"
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BINARY = ("B", "KiB", "MiB", "GiB")


def render(bench: Bench) -> RenderableType:
    """All tables of a bench, how to read them, and what to know before believing them."""
    return Group(*_tables(bench), *_legend(bench))


def _tables(bench: Bench) -> Iterator[RenderableType]:
    mine, theirs = own(bench.medians), against_peers(bench.medians)
    labels = {OTHER_BUILD: bench.other_build}
    shown = {(int(row.ranks), str(row.operation)) for row in _rows(mine)}
    for ranks in sorted({ranks for ranks, _ in shown}):
        for operation in (name for name in CALLS if (ranks, name) in shown):
            yield _table(
                f"{CALLS[operation]}, {ranks} ranks",
                _only(mine, ranks, operation),
                _only(theirs, ranks, operation),
                labels,
            )
            yield Text()


def _rows(frame: pd.DataFrame) -> list[Any]:
    """The rows, each with an attribute per column."""
    return list(frame.itertuples(index=False))


def _only(frame: pd.DataFrame, ranks: int, operation: str) -> pd.DataFrame:
    return frame[(frame["ranks"] == ranks) & (frame["operation"] == operation)]


def _table(
    title: str, mine: pd.DataFrame, theirs: pd.DataFrame, labels: Mapping[str, str]
) -> Table:
    peers = [peer for peer in SHOWN if peer in set(theirs["peer"])]
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("call", no_wrap=True)
    for name in ("direct", "of bound", *(labels.get(peer, peer) for peer in peers)):
        table.add_column(name, justify="right")
    table.add_column("best MPI over direct", justify="left")
    for form in FORMS:
        here = mine[mine["form"] == form].sort_values("bytes")
        for row in _rows(here):
            cell = theirs[(theirs["form"] == form) & (theirs["bytes"] == row.bytes)]
            found = {each.peer: each for each in _rows(cell)}
            table.add_row(
                bytes_text(int(row.bytes)),
                form,
                seconds_text(float(row.seconds)),
                percent_text(float(row.share)),
                *(_peer(found.get(peer)) for peer in peers),
                _best(cell[cell["best"]]),
            )
        table.add_section()
    return table


def _peer(row: Any) -> Text:
    if row is None:
        return Text(NOTHING)
    text = Text(seconds_text(row.seconds))
    text.append(f" {ratio_text(row.ratio)}×", style="bold" if row.best else "dim")
    return text


def _best(rows: pd.DataFrame) -> Text:
    """ "1.52× (1.40 to 1.61) openmpi sm", green where direct is surely faster, red where slower."""
    if rows.empty:
        return Text(NOTHING)
    row = rows.iloc[0]
    style = "green" if row["low"] > 1 else "red" if row["high"] < 1 else ""
    text = Text(f"{ratio_text(row['ratio'])}×", style=f"bold {style}")
    if math.isfinite(row["low"]):
        text.append(f" ({ratio_text(row['low'])} to {ratio_text(row['high'])})", style=style)
    text.append(f" {row['peer']}", style="dim")
    if row["setting"] != DEFAULT:
        text.append(f" {row['setting']}", style="dim")
    return text


def _legend(bench: Bench) -> Iterator[RenderableType]:
    asked = bench.header["question"]
    where = "ordinary NumPy arrays" if asked["private"] else "arrays of the arena"
    arms = bench.medians.groupby(["ranks", "flavour", "setting"])
    blocks = int(arms["block"].nunique().min())
    lines = [
        f"Times are medians over launches of the maximum over ranks, {where}, "
        f"{asked['measurement']['cadence']} cadence; × is the peer's time over direct's in the "
        "same launch, above 1 direct is faster. Of bound: the time that the bytes take at the "
        "rate at which all ranks copy at once, over direct's time.",
        f"{blocks} blocks"
        + (": no interval below 6" if blocks < 6 else ", exact 95 % intervals in brackets")
        + f". Direct against itself strays {percent_text(noise(bench.medians), 1)}.",
        *_of_settings(bench),
        *_of_other_build(bench),
        *(f"Note: {note}" for note in bench.notes),
    ]
    yield from (Text(line) for line in lines)


def _of_settings(bench: Bench) -> Iterator[str]:
    if bench.header["question"].get("tuned"):
        yield (
            "Each MPI is shown in the setting that did best in the cell; "
            f"{tried(bench.medians)} settings were tried in all. The lowest of many medians is low "
            "by chance too: that counts against direct."
        )


def _of_other_build(bench: Bench) -> Iterator[str]:
    """One line: how direct compares with another build of itself over all cells."""
    compared = against_peers(bench.medians)
    ratios = compared[compared["peer"] == OTHER_BUILD]["ratio"]
    if ratios.empty:
        return
    slower = [
        f"{row.form} {CALLS[row.operation]} {bytes_text(int(row.bytes))} with {row.ranks} ranks "
        f"{ratio_text(row.ratio)}×"
        for row in _rows(slower_cells(compared))
    ]
    yield (
        f"{bench.other_build} over direct, all launches: median {ratio_text(ratios.median())}×, "
        f"lowest {ratio_text(ratios.min())}× of {len(ratios)} cells; below {SLOWER} with the whole "
        f"interval: {'; '.join(slower) or 'none'}."
    )


def bytes_text(count: int) -> str:
    """ "16 MiB"; a dash where an operation has no data."""
    if not count:
        return NOTHING
    power = 0
    while count % 1024 == 0 and power < len(BINARY) - 1:
        count, power = count // 1024, power + 1
    return f"{count} {BINARY[power]}"


def seconds_text(seconds: float) -> str:
    """Three significant digits: "12.3 µs"."""
    if not math.isfinite(seconds):
        return NOTHING
    size, unit = next(((s, u) for s, u in UNITS if seconds >= s * 0.9995), UNITS[-1])
    value = seconds / size
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def ratio_text(ratio: float) -> str:
    """ "1.04", "12.3", "104"."""
    if not math.isfinite(ratio):
        return NOTHING
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def percent_text(share: float, decimals: int = 0) -> str:
    """ "93 %" of 0.93."""
    return f"{100 * share:.{decimals}f} %" if math.isfinite(share) else NOTHING
