"""The columns of the tables behind the figures: their heads, and the words for a row's values."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from experiments.model.quantities import NOTHING, percent_text, ratio_text, seconds_text
from plots.layout.labels import (
    bandwidth_text,
    bytes_text,
    interval_text,
    mpi_name,
    operation_name,
    p_text,
)
from plots.layout.placement_text import percent

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


def share_text(share: float | None) -> str:
    """ "99.8 %"; "" of a share that is not known."""
    return NOTHING if pd.isna(share) else percent(share)


def placed_text(placed: str) -> str:
    """ "4: 8 MiB; 5: 4 KiB" of "4: 8388608; 5: 4096"."""
    pairs = (each.split(": ") for each in placed.split("; ") if each)
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
    "factor": _word("factor", "factor"),
    "step": _word("step", "step"),
    "above": _word("above", "above"),
    "below": _word("below", "below"),
    "arm": _word("arm", "arm"),
    "mpi": _word("MPI", "mpi", mpi_name),
    "ranks": _number("ranks", "ranks"),
    "binding": _word("binding", "binding"),
    "rank": _number("rank", "rank"),
    "locality": _word("locality", "locality"),
    "operation": _word("operation", "operation", operation_name),
    "transport": _word("transport", "transport"),
    "kind": _word("kind", "kind"),
    "dtype": _word("dtype", "dtype"),
    "cadence": _word("cadence", "cadence"),
    "cache": _word("cache", "cache"),
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
