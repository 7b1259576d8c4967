"""What the pages say of a stored bench: direct against the best MPI of each cell, by ranks.

Reads the JSON of `./inv bench --json`, of which docs/data keeps the launch medians.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from experiments.analysis.disturbed import OTHERS, STOLEN
from experiments.analysis.selection import in_order
from experiments.analysis.statistics import Verdict, median_ratio
from experiments.model import plain_file
from experiments.model.contender_names import DIRECT, FORMS, MPI_ITSELF, OBJECTS, PICKLE, PLAIN
from experiments.model.environment import MPIS
from experiments.model.mpi_settings import DEFAULT
from experiments.model.quantities import (
    NOTHING,
    bytes_text,
    interval_text,
    percent_text,
    ratio_text,
    seconds_text,
)
from experiments.results import typed
from experiments.results.store import ResultsError
from plots.layout.labels import OPERATIONS, mpi_name, operation_name


def load(path: Path) -> dict[str, Any]:
    """The JSON of a bench, compressed by xz; docs/schemas/bench.schema.json.

    Raises:
        ResultsError: it is damaged or something else; names the field.
    """
    try:
        packed = plain_file.read(path, typed.MOST_JSON, follow=True)
        return typed.parsed(typed.unpacked(packed), "bench")
    except (OSError, ValueError, MemoryError) as error:
        raise ResultsError(
            f"{path} holds no medians of a bench ({error}); get it again, or write it: "
            "./inv bench --json | xz"
        ) from error


def _best(summary: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [peer for peer in summary["peers"] if peer["best"]]


def _by_form(summary: Mapping[str, Any]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """ " with plain calls" and the best MPIs of its cells, for each form; "" where there is one."""
    best = _best(summary)
    forms = in_order((peer["form"] for peer in best), FORMS)
    for form in forms:
        yield f" with {form} calls" * (len(forms) > 1), [p for p in best if p["form"] == form]


def _settings(best: Iterable[Mapping[str, Any]]) -> str:
    """ ", each at its default settings", where no other was tried."""
    defaults = all(peer.get("setting", DEFAULT) == DEFAULT for peer in best)
    return ", each MPI at its default settings" * defaults


def _disturbed(summary: Mapping[str, Any]) -> str:
    """What other work the CPUs did meanwhile, a sentence each."""
    notes = [note for note in summary.get("notes", []) if note.startswith((STOLEN, OTHERS))]
    return "".join(f" {note[0].upper()}{note[1:]}." for note in notes)


def sentence(summary: Mapping[str, Any]) -> str:
    """In how many cells direct is faster than the best MPI, by how much, and how sure that is; a
    sentence for each form of calls."""
    best = _best(summary)
    sentences = []
    for calls, peers in _by_form(summary):
        ratios = [peer["ratio"] for peer in peers]
        above = sum(ratio > 1 for ratio in ratios)
        sure = sum(peer["verdict"] == Verdict.DIFFERS and peer["low"] > 1 for peer in peers)
        sentences.append(
            f"direct{calls} takes less time than the best MPI of the cell in {above} of "
            f"{len(peers)} cells: the best MPI takes {ratio_text(median(ratios))} times as long in "
            f"the median cell ({ratio_text(min(ratios))} to {ratio_text(max(ratios))} from cell to "
            f"cell); whole interval above 1 and beyond the noise floor: {sure} cells."
        )
    blocks = sorted({peer["blocks"] for peer in best})
    lacking = sum(peer["low"] is None for peer in best)
    noise = math.nan if summary["noise"] is None else summary["noise"]
    fewest = f"{blocks[0]} or {blocks[-1]}" if len(blocks) > 1 else str(blocks[0])
    few = f"{lacking} of {len(best)} cells have fewer than 6 blocks and no interval. "
    return (
        f"{' '.join(sentences)} {few * bool(lacking)}{fewest} blocks of three MPIs in turns"
        f"{_settings(best)}. Noise floor {percent_text(noise)}.{_disturbed(summary)}"
    )


def headline(summary: Mapping[str, Any]) -> str:
    """The median ratio and its range for each form of calls, in one sentence; what disturbed it."""
    best = _best(summary)
    counts = sorted({peer["ranks"] for peer in best})
    parts = []
    for calls, peers in _by_form(summary):
        over_direct = [peer["ratio"] for peer in peers]
        parts.append(
            f"{ratio_text(median(over_direct))} times as long as direct in the median cell{calls} "
            f"({ratio_text(min(over_direct))} to {ratio_text(max(over_direct))} from cell to cell "
            f"of {len(over_direct)})"
        )
    ranks = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return (
        f"With {ranks} ranks, the best MPI takes {', and '.join(parts)}"
        f"{_settings(best)}.{_disturbed(summary)}"
    )


def ratios(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: plain calls by operation and size, a column for each number of ranks."""
    counts = sorted({peer["ranks"] for peer in summary["peers"]})
    direct, best = (
        {_cell(row): row for row in cells if row["form"] == PLAIN}
        for cells in (summary["direct"], _best(summary))
    )
    head = ["operation", "message", f"direct, {counts[-1]} ranks"]
    head += [f"best MPI / direct, {count} ranks" for count in counts]
    operations = in_order((operation for operation, _, _ in direct), OPERATIONS)
    sizes = sorted({size for _, size, _ in direct})
    return head, [
        [
            operation_name(operation),
            bytes_text(size),
            seconds_text(direct[operation, size, counts[-1]]["seconds"]),
            *(_peer(best.get((operation, size, count))) for count in counts),
        ]
        for operation, size in product(operations, sizes)
    ]


def objects(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: calls that take and give objects, mpi4py's over this library's, by MPI."""
    times = _times(summary)
    flavours = [flavour for flavour in MPIS if any(key[1] == flavour for key in times)]
    cells = [key[2:] for key in times if key[:2] == (OBJECTS, flavours[0])]
    head = ["call", "message", f"hbmcomm over {mpi_name(flavours[0])}"]
    head += [f"mpi4py / hbmcomm, {mpi_name(flavour)}" for flavour in flavours]

    def ratio(flavour: str, operation: str, size: int) -> str:
        theirs = np.array(times[PICKLE, flavour, operation, size])
        ours = np.array(times[OBJECTS, flavour, operation, size])
        middle, low, high = median_ratio(theirs / ours)  # in one launch they took turns
        interval = interval_text(low, high)
        return ratio_text(middle) + f" ({interval})" * (interval != NOTHING)

    return head, [
        [
            operation,
            bytes_text(size),
            seconds_text(median(times[OBJECTS, flavours[0], operation, size])),
            *(ratio(flavour, operation, size) for flavour in flavours),
        ]
        for operation in in_order({operation for operation, _ in cells}, OPERATIONS)
        for size in sorted({size for _, size in cells})
    ]


def spellings(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: what a call takes in each way to write it, over the first MPI of the bench."""
    times = _times(summary)
    flavour = next(mpi for mpi in MPIS if any(key[1] == mpi for key in times))
    cells = {key[2:] for key in times if key[:2] == (OBJECTS, flavour)}
    head = ["operation", "message", "mpi4py, objects", "hbmcomm, objects"]
    head += ["mpi4py, arrays", "hbmcomm, arrays"]
    return head, [
        [
            operation_name(operation),
            bytes_text(size),
            *(
                seconds_text(median(times[contender, flavour, operation, size]))
                for contender in (PICKLE, OBJECTS, MPI_ITSELF, DIRECT)
            ),
        ]
        for operation in in_order({operation for operation, _ in cells}, OPERATIONS)
        for size in sorted({size for _, size in cells})
    ]


def _times(summary: Mapping[str, Any]) -> dict[tuple[str, str, str, int], list[float]]:
    """{contender, MPI, operation, bytes: median times of launches, in their order}, plain calls."""
    times: dict[tuple[str, str, str, int], list[float]] = {}
    for row in summary["launches"]:
        if row["form"] == PLAIN:
            key = row["contender"], row["flavour"], row["operation"], row["bytes"]
            times.setdefault(key, []).append(row["median_s"])
    return times


def _cell(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["operation"], row["bytes"], row["ranks"]


def _peer(peer: Mapping[str, Any] | None) -> str:
    """ "2.27, Intel MPI (2.20 to 2.30)"; without an interval where there are too few blocks."""
    if peer is None:
        return NOTHING
    low, high = (math.nan if peer[end] is None else peer[end] for end in ("low", "high"))
    interval = interval_text(low, high)
    shown = f"{ratio_text(peer['ratio'])}, {mpi_name(peer['peer'])}"
    return shown if interval == NOTHING else f"{shown} ({interval})"
