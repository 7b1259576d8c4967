"""The tables behind the figures: their columns, and a row's values in words.

What each table shows is beside its figure; table.py writes them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from experiments.analysis.campaign import BASELINE, Campaign
from experiments.analysis.selection import places
from experiments.analysis.statistics import EQUIVALENCE
from experiments.model.arms import HOST, arm_key
from experiments.model.quantities import (
    NOTHING,
    bandwidth_text,
    bytes_text,
    interval_text,
    p_text,
    percent_text,
    ratio_text,
    seconds_text,
    share_text,
)
from plots.layout.labels import MPIS, OPERATIONS, floor_text, mpi_name, operation_name
from plots.layout.style import TRANSPORTS
from plots.tables.table import Table

Row = dict[Any, Any]


class Column(NamedTuple):
    """A column: its head, what it shows of a row, and whether that is a number."""

    head: str
    text: Callable[[Row], str]
    numeric: bool = True


def launches_text(row: Row) -> str:
    """ "6 of 6"; of fewer than half their names as well: "1 of 6: 0003-host"."""
    few = 2 * row["launches"] < row["of"]
    return f"{row['launches']} of {row['of']}" + (f": {row['names']}" if few else "")


def placed_text(placed: str) -> str:
    """ "4: 8 MiB; 5: 4 KiB" of "4: 8388608; 5: 4096"."""
    pairs = (part.split(": ") for part in placed.split("; ") if part)
    return "; ".join(f"{node}: {bytes_text(int(size))}" for node, size in pairs) or NOTHING


def widest_text(row: Row) -> str:
    """ "0.93 to 1.26 at 1 KiB": the interval of the size that may cost most; a dash for none."""
    interval = interval_text(row["widest_low"], row["widest_high"])
    return interval if interval == NOTHING else f"{interval} at {bytes_text(row['widest_bytes'])}"


def _word(head: str, key: str, words: Callable[[Any], str] = str) -> Column:
    return Column(head, lambda row: words(row[key]), numeric=False)


def _number(head: str, key: str, words: Callable[[Any], str] = str) -> Column:
    return Column(head, lambda row: words(row[key]))


FACTORS: dict[str, Column] = {
    **{name: _word(name, name) for name in ("factor", "step", "above", "below", "arm")},
    "mpi": _word("MPI", "mpi", mpi_name),
    "ranks": _number("ranks", "ranks"),
    "binding": _word("binding", "binding"),
    "rank": _number("rank", "rank"),
    "locality": _word("locality", "locality"),
    "operation": _word("operation", "operation", operation_name),
    **{name: _word(name, name) for name in ("transport", "kind", "dtype", "cadence", "cache")},
    "bytes": _number("message per rank", "bytes", bytes_text),
}
"""What names a row, in the order of the columns."""

TIMES = (
    _number("median", "median_s", seconds_text),
    _number("95 % from", "low_s", seconds_text),
    _number("to", "high_s", seconds_text),
    _number("p95", "p95_s", seconds_text),
    _number("p99", "p99_s", seconds_text),
    _number("memory bound", "bound_s", seconds_text),
    _number("skew", "skew_s", seconds_text),
    _number("bus", "bus_bytes_per_s", bandwidth_text),
    _number("group", "group"),
    _number("n", "n"),
    _number("launches", "launches"),
)
STEP_TIMES = (
    _number("step", "median_s", seconds_text),
    _number("95 % from", "low_s", seconds_text),
    _number("to", "high_s", seconds_text),
    _number("computation", "bound_s", seconds_text),
    _number("communication", "share", percent_text),
    _number("p95", "p95_s", seconds_text),
    _number("n", "n"),
    _number("launches", "launches"),
)
_JUDGED = (
    _number("ratio", "ratio", ratio_text),
    Column("95 % interval", lambda row: interval_text(row["low"], row["high"])),
    _word("verdict", "verdict"),
)
GROUPS = (
    *_JUDGED,
    Column("widest", widest_text, numeric=False),
    _number("sizes", "cells"),
    _number("blocks", "blocks"),
    _number("p", "p", p_text),
)
RATIOS = (
    *_JUDGED,
    _number("blocks", "blocks"),
    _number("p", "p", p_text),
    _number("p (Holm)", "p_holm", p_text),
    _number("least", "least_p_holm", p_text),
)
PAGES = (
    _number("CPU", "cpu"),
    Column("its node", lambda row: str(row["cpu_node"]) if row["cpu_node"] >= 0 else NOTHING),
    _number("asked for", "asked"),
    _word("on nodes", "placed", placed_text),
    _number("as asked", "as_asked", share_text),
    _number("local", "local", share_text),
    _word("method", "method"),
    Column("launches", launches_text),
)

OVER_BLOCKS = (
    "median over blocks with its exact 95 % interval (order statistics: it covers 97 to 99 of 100 "
    "with 6 to 10 blocks)."
)
_PAIRED = (
    "turn by turn where launches took turns, else of launch values; "
    f"{OVER_BLOCKS} A ratio differs from 1 where an interval that holds for all rows of the table "
    "at once (joint_low and joint_high in the CSV) is beyond the noise floor of its size; two arms "
    "are equivalent where interval and floor are within "
    f"±{100 * EQUIVALENCE:.0f} %; all others are bounded by both. p is of Wilcoxon's signed-rank "
    "test, Holm-corrected over the sizes of a series; the least is what the blocks of that series "
    "can reach."
)
WIDEST = (
    "Widest: the interval of the single size that may cost most; the median hides what one size "
    "costs, so that a group is equivalent only where each of its sizes is."
)
_ALWAYS = ("operation", "bytes", "rank")  # factors that have a column even if they never vary


class Listing(NamedTuple):
    """A table behind a figure: its words, what of a campaign it shows, its columns after the
    factors.

    Attributes:
        data: or the name of an attribute of the campaign.
        caption: {floors} in it is replaced by the noise floors, {ours} by our transport.
    """

    name: str
    title: str
    caption: str
    data: str | Callable[[Campaign], pd.DataFrame]
    columns: tuple[Column, ...] = RATIOS
    detail: bool = False


def listed(listing: Listing, campaign: Campaign) -> list[Table]:
    """The table; none of a campaign that does not fill it."""
    of = listing.data
    data: pd.DataFrame = getattr(campaign, of) if isinstance(of, str) else of(campaign)
    if data.empty:
        return []
    factors = [key for key in FACTORS if key in data]
    varied = [key for key in factors if data[key].nunique() > 1 or key in _ALWAYS]
    ordered = data.sort_values(varied, key=_reading_order, kind="stable")
    shown = [_with_kind(row) for row in ordered.to_dict("records")]
    constant = [
        f"{FACTORS[key].head} {FACTORS[key].text(shown[0])}" for key in factors if key not in varied
    ]
    sentences = [
        campaign.machine,
        listing.caption.format(floors=floor_text(campaign.floors), ours=campaign.ours),
        _paired(data) if listing.columns is RATIOS else "",
        f"All rows: {', '.join(constant)}." if constant else "",
    ]
    columns = [*(FACTORS[key] for key in varied), *listing.columns]
    return [
        Table(
            listing.name,
            listing.title,
            " ".join(filter(None, sentences)),
            data,
            head=[column.head for column in columns],
            rows=[[column.text(row) for column in columns] for row in shown],
            numeric=[column.numeric for column in columns],
            factors=len(varied),
            cells=[int(index) for index in ordered.index],
            detail=listing.detail,
        )
    ]


def _with_kind(row: Row) -> Row:
    """The row with "(emulated)" beside its kind of memory where that is so."""
    return row | {"kind": f"{row['kind']} (emulated)"} if row.get("emulated") else row


def _paired(data: pd.DataFrame) -> str:
    """How ratios are paired, tested and worded."""
    bindings = "binding" in set(data.get("factor", ()))
    others = " (of bindings the n-th block of one with the n-th of the other)"
    return f"Ratios paired within a block{others * bindings}, {_PAIRED}"


def _reading_order(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Names in the order in which figures show them; numbers as they are."""
    if column.name in ("ranks", "rank", "bytes"):
        return column
    if column.name == "arm":
        return places(column, sorted(set(column), key=arm_key))
    return places(column, (HOST, BASELINE, *OPERATIONS, *TRANSPORTS, *MPIS))
