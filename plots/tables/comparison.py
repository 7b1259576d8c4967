"""Two campaigns side by side, as text for a terminal and as JSON. Computes nothing.

What differs about them comes first: a reader may then need no result.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from experiments.analysis import reading
from experiments.analysis.comparison import KEYS, Comparison, compare
from experiments.analysis.selection import json_records, json_value, rows
from experiments.analysis.statistics import CONTAINER, EQUIVALENCE, FEWEST_BLOCKS, Verdict
from experiments.console import Stages, print_text, to_stdout
from experiments.model.quantities import (
    bytes_text,
    interval_text,
    percent_text,
    ratio_text,
    seconds_text,
)
from plots.layout.labels import arm_name, by_operation, operation_name

WIDTH = 170  # columns where standard output is not a terminal: a line per row
_ALWAYS = ("operation", "transport", "bytes")  # have a column even if they never vary
_WORDS: dict[str, Callable[[Any], str]] = {
    "arm": arm_name,
    "operation": operation_name,
    "bytes": bytes_text,
}
_STYLES = {
    Verdict.DIFFERS: "bold",
    Verdict.EQUIVALENT: "green",
    Verdict.BOUNDED: "",
    Verdict.TOO_FEW: "dim",
}


def show(first: Path, second: Path, other_mpi: bool, as_json: bool, stages: Stages) -> None:
    """Print the comparison of two results folders.

    Raises:
        ExperimentsError: a folder cannot be read, or the two cannot be compared.
    """
    with stages.stage("comparison"):
        comparison = compare(reading.load(first), reading.load(second), other_mpi)
    if as_json:
        print_text(to_json(comparison), end="")
        return
    to_stdout(render(comparison), WIDTH)


def render(comparison: Comparison) -> RenderableType:
    """What differs, what is left out, the results, and how to read them."""
    warning = [Text(comparison.warning, style="bold red"), Text()] if comparison.warning else []
    return Group(
        *warning, *_differences(comparison), Text(), *_results(comparison), *_legend(comparison)
    )


def to_json(comparison: Comparison) -> str:
    """The table as JSON: seconds, bytes and plain ratios; null where there is no number."""
    values = {
        "campaigns": list(comparison.names),
        "warning": comparison.warning,
        "differences": [vars(difference) for difference in comparison.differences],
        "left_out": comparison.left_out,
        "noise_floors": [json_value(floor) for floor in comparison.floors],
        "cells": json_records(comparison.cells),
    }
    return json.dumps(values, indent=1) + "\n"


def _differences(comparison: Comparison) -> Iterator[RenderableType]:
    if not comparison.differences:
        yield Text("Nothing that was recorded differs between the campaigns.")
        return
    table = Table(title="What differs", title_justify="left", title_style="bold")
    for head in ("", *comparison.names):
        table.add_column(head, overflow="fold")
    for difference in comparison.differences:
        table.add_row(
            *(Text(text) for text in (difference.what, difference.first, difference.second))
        )
    yield table


def _results(comparison: Comparison) -> Iterator[RenderableType]:
    keys = [key for key in KEYS if key not in CONTAINER]  # an arm's name says them
    levels = {key: list(comparison.cells[key].unique()) for key in keys}
    varied = [key for key in keys if len(levels[key]) > 1 or key in _ALWAYS]
    others = [key for key in varied if key not in ("operation", "bytes")]
    few = int((comparison.cells["verdict"] == Verdict.TOO_FEW).sum())
    if few:
        yield Text(
            f"{few} of {len(comparison.cells)} rows have fewer than {FEWEST_BLOCKS} launches on "
            "a side, so that they have no interval and claim nothing: measure more --blocks.",
            style="bold",
        )
    ordered = comparison.cells.sort_values(["operation", *others, "bytes"], key=by_operation)
    yield _table(varied, rows(ordered))
    constant = {key: str(levels[key][0]) for key in keys if key not in varied}
    shared = ", ".join(f"{key} {level}" for key, level in constant.items() if level)
    yield Text(f"All rows: {shared}.")


def _table(varied: Sequence[str], cells: Sequence[Any]) -> Table:
    """A row for each cell: the levels of what varies, the two times, their ratio."""
    table = Table(title="Results", title_justify="left", title_style="bold")
    for key in varied:
        table.add_column(key, justify="right" if key in ("bytes", "ranks") else "left")
    for head in ("first", "second", "second / first", "95 % interval", "launches of each"):
        table.add_column(head, justify="right")
    table.add_column("verdict")
    for cell in cells:
        table.add_row(
            *(_WORDS.get(key, str)(getattr(cell, key)) for key in varied),
            seconds_text(cell.first_s),
            seconds_text(cell.second_s),
            ratio_text(cell.ratio),
            interval_text(cell.low, cell.high),
            f"{cell.first_launches}, {cell.second_launches}",
            Text(str(cell.verdict), style=_STYLES[cell.verdict]),
        )
    return table


def _legend(comparison: Comparison) -> Iterator[RenderableType]:
    floors = [
        percent_text(floor) if math.isfinite(floor) else "unknown (too few A/A cells)"
        for floor in comparison.floors
    ]
    yield Text(
        "Unpaired: launches of different campaigns share no block, so whatever changed between "
        "them, the machine too, is part of these ratios. Medians over launches, BCa "
        f"bootstrap 95 % interval of their ratio, none below {FEWEST_BLOCKS} launches a side. Each "
        "is of one cell alone: of many cells without any difference, a few differ by chance. "
        "Launches of a row timed its operation in groups of one size on both sides; a report's "
        "times are of all launches of its campaign."
    )
    yield Text(
        f"Noise floors within a campaign, at most: {floors[0]} and {floors[1]}. A ratio differs "
        "where its whole interval is beyond the larger one of its MPI and size, and is equivalent "
        f"where it is within ±{100 * EQUIVALENCE:.0f} %; neither floor holds what drifts between "
        "campaigns."
    )
    for sentence in comparison.left_out:
        yield Text(f"Left out: {sentence}.")
