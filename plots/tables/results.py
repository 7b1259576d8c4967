"""The tables behind the figures: which columns they have, and in which words.

Computes nothing that findings.py has not computed; table.py writes them.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from experiments.analysis.arm_order import arm_key
from experiments.analysis.findings.campaign import BASELINE, OURS, PLACEMENTS, Findings
from experiments.analysis.findings.selection import in_order, rows
from experiments.analysis.statistics import EQUIVALENCE
from experiments.model.arms import HOST
from experiments.model.quantities import NOTHING, percent_text, ratio_text, seconds_text
from plots.layout.labels import (
    MPIS,
    OPERATIONS,
    STEPS,
    bandwidth_text,
    bytes_text,
    interval_text,
    mpi_name,
    operation_name,
    p_text,
)
from plots.layout.placement_text import percent
from plots.layout.style import TRANSPORTS
from plots.tables.published import comparison
from plots.tables.table import Table

_OVER_BLOCKS = (
    "median over blocks with its exact 95 % interval (order statistics: it covers 97 to 99 of 100 "
    "with 6 to 10 blocks)."
)
_Column = tuple[str, Callable[[Any], str], bool]

_FACTORS: dict[str, _Column] = {
    "factor": ("factor", str, False),
    "step": ("step", str, False),
    "above": ("above", str, False),
    "below": ("below", str, False),
    "arm": ("arm", str, False),
    "mpi": ("MPI", mpi_name, False),
    "ranks": ("ranks", str, True),
    "binding": ("binding", str, False),
    "rank": ("rank", str, True),
    "locality": ("locality", str, False),
    "operation": ("operation", operation_name, False),
    "transport": ("transport", str, False),
    "kind": ("kind", str, False),
    "dtype": ("dtype", str, False),
    "cadence": ("cadence", str, False),
    "cache": ("cache", str, False),
    "bytes": ("message per rank", lambda size: bytes_text(int(size)), True),
}


def tables(found: Findings) -> list[Table]:
    """Every table that this campaign fills."""
    candidates = [
        (
            "times",
            "Times",
            "Median over launches of the launch median and its 95 % nonparametric interval; p95 "
            "and p99 are medians of the launches' own, none below 100 iterations; the memory bound "
            "is the least time that the copy bandwidth allows; skew is the time from the first to "
            "the last rank's begin after the barrier; bus is the bus bandwidth, a rank's "
            "largest buffer over the median, times 2(n - 1)/n for Allreduce and (n - 1)/n for "
            "Allgather and Reduce_scatter_block on n ranks; n counts the iterations of all "
            "launches, and an iteration times a group of at most so many operations back to back.",
            found.times,
        ),
        (
            "transport",
            "Transports",
            f"Time with the transport named over time with {OURS}, over the same buffers in the "
            "same launch.",
            found.transports,
        ),
        (
            "speedup",
            "Speed-up of high-bandwidth memory",
            f"Time in {BASELINE} memory over time in the kind named.",
            found.speedups,
        ),
        (
            "placement",
            "Placement",
            "Time spread over packed (binding), remote over local (locality).",
            _with_levels(found.placements),
        ),
        (
            "container",
            "Cost of a container",
            f"Time in the arm named over time on the {HOST}.",
            found.containers,
        ),
        (
            "groups",
            "Cost of a container over all sizes",
            f"Time in the arm named over time on the {HOST}: in each block the median over the "
            f"sizes, then {_OVER_BLOCKS} p is of Wilcoxon's signed-rank test, not corrected.",
            found.groups,
        ),
        (
            "isolation",
            "Cost of a container over the same files without one",
            "Time in the arm named over time in the arm userland, which runs the image's files on "
            "the host.",
            found.isolation,
        ),
        (
            "chain",
            "Cost of each step from the host to a container",
            "Time in the arm above over time in the arm below, the step before it: in each block "
            f"the median over the sizes, then {_OVER_BLOCKS} "
            + " ".join(f"{name.capitalize()}: {what}." for name, what in STEPS.items()),
            found.whole_steps,
        ),
        (
            "tails",
            "Cost of a container to the slowest operations",
            "p99 of a launch in the arm named over that in the arm userland, or on the "
            f"{HOST} where there is none.",
            found.tails,
        ),
        (
            "twins",
            f"The {HOST} against itself",
            f"Time of the repeated {HOST} arm over the first: no container causes this. "
            f"The noise floor holds 95 of 100 of these ratios: {_floors(found)}.",
            found.twins,
        ),
        (
            "python",
            "Cost of Python",
            f"Time of an MPI's buffer calls from Python on the {HOST} over the same calls from C, "
            "by the Intel MPI Benchmarks (IMB-MPI1).",
            found.python,
        ),
        (
            "baselines",
            "Python without MPI",
            f"Time with threads or multiprocessing of Python over time with the {HOST}'s MPI calls "
            "from Python: of buffers for threads and shared memory, of objects for queues.",
            found.baselines,
        ),
        (
            "pages",
            "Where every rank and every page was",
            "The CPU of each rank and the node it belongs to; the nodes asked for, and bytes of "
            "its buffers on each node, as the kernel reports by the method named; local is "
            "what is on the node of the CPU or on one without CPUs beside it; launches of the arm "
            "that agree to the byte. Where launches differ each way has a row.",
            found.pages,
        ),
    ]
    made = [
        _table(name, title, f"{found.machine} {caption}".strip(), data, data is found.twins)
        for name, title, caption, data in candidates
        if not data.empty
    ]
    return [*comparison(found), *made]


def _table(name: str, title: str, caption: str, data: pd.DataFrame, detail: bool) -> Table:
    factors = [key for key in _FACTORS if key in data]
    varied = [key for key in factors if data[key].nunique() > 1 or key in _ALWAYS]
    measures = _measures(data)
    ordered = data.sort_values(varied, key=_reading_order, kind="stable")
    flags = ordered.get("emulated", pd.Series(False, index=ordered.index))
    shown = ordered.assign(
        kind=[
            f"{kind} (emulated)" if flag else kind
            for kind, flag in zip(ordered["kind"], flags, strict=True)
        ]
    ).to_dict("records")
    constant = [
        f"{_FACTORS[key][0]} {_FACTORS[key][1](shown[0][key])}"
        for key in factors
        if key not in varied
    ]
    if measures is _RATIOS:
        bindings = "binding" in set(data.get("factor", ()))
        others = " (of bindings the n-th block of one with the n-th of the other)"
        caption += (
            f" Ratios paired within a block{others * bindings}, turn by turn where launches took "
            f"turns, else of launch values; {_OVER_BLOCKS} A ratio differs from 1 where the whole "
            "interval lies beyond the noise floor of its MPI and size; two arms are equivalent "
            f"where interval and floor lie within ±{100 * EQUIVALENCE:.0f} %; all others are "
            "bounded by both. p is of Wilcoxon's signed-rank test, Holm-corrected over the sizes "
            "of a "
            "series; the least is what the blocks of that series can reach."
        )
    if constant:
        caption += f" All rows: {', '.join(constant)}."
    return Table(
        name,
        title,
        caption,
        data,
        head=[_FACTORS[key][0] for key in varied] + [text for text, _ in measures],
        rows=[
            [_FACTORS[key][1](row[key]) for key in varied] + [form(row) for _, form in measures]
            for row in shown
        ],
        numeric=[_FACTORS[key][2] for key in varied] + [text not in _TEXTS for text, _ in measures],
        factors=len(varied),
        cells=[int(index) for index in ordered.index],
        detail=detail,
    )


def _with_levels(placements: pd.DataFrame) -> pd.DataFrame:
    """Where both factors vary, a row that compares one holds none of its levels, but two."""
    both = {name: f"{worse} over {better}" for name, worse, better in PLACEMENTS}
    return placements.fillna({name: text for name, text in both.items() if name in placements})


def _measures(data: pd.DataFrame) -> "list[tuple[str, Callable[[_Row], str]]]":
    """The columns of a row, by what it is a row of."""
    if "median_s" in data:
        return _TIMES
    if "cpu_node" in data:
        return _PAGES
    return _GROUPS if "cells" in data else _RATIOS


def _reading_order(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Names in the order in which figures show them; numbers as they are."""
    if column.name in ("ranks", "rank", "bytes"):
        return column
    if column.name == "arm":
        return column.map(
            {arm: place for place, arm in enumerate(sorted(set(column), key=arm_key))}
        )
    known = in_order(column, (HOST, BASELINE, *OPERATIONS, *TRANSPORTS, *MPIS))
    return column.map({value: place for place, value in enumerate(known)})


def _floors(found: Findings) -> str:
    """ "Open MPI 1.2 % from 64 KiB to 4 MiB, ...; 1.7 % in all"."""
    parts = [
        f"{mpi_name(row.mpi)} {percent_text(row.floor)} {row.band}"
        for row in rows(found.floors.frame().dropna())
    ]
    return "; ".join([*parts, f"{percent_text(found.floor)} over all cells"])


_Row = dict[Any, Any]
_ALWAYS = ("operation", "bytes", "rank")  # factors that have a column even if they never vary
_TEXTS = ("verdict", "on nodes", "method")  # columns after the factors that hold no numbers

_TIMES: list[tuple[str, Callable[[_Row], str]]] = [
    ("median", lambda row: seconds_text(row["median_s"])),
    ("95 % from", lambda row: seconds_text(row["low_s"])),
    ("to", lambda row: seconds_text(row["high_s"])),
    ("p95", lambda row: seconds_text(row["p95_s"])),
    ("p99", lambda row: seconds_text(row["p99_s"])),
    ("memory bound", lambda row: seconds_text(row["bound_s"])),
    ("skew", lambda row: seconds_text(row["skew_s"])),
    ("bus", lambda row: bandwidth_text(row["bus_bytes_per_s"])),
    ("group", lambda row: str(row["group"])),
    ("n", lambda row: str(row["n"])),
    ("launches", lambda row: str(row["launches"])),
]
_GROUPS: list[tuple[str, Callable[[_Row], str]]] = [
    ("ratio", lambda row: ratio_text(row["ratio"])),
    ("95 % interval", lambda row: interval_text(row["low"], row["high"])),
    ("verdict", lambda row: row["verdict"]),
    ("sizes", lambda row: str(row["cells"])),
    ("blocks", lambda row: str(row["blocks"])),
    ("p", lambda row: p_text(row["p"])),
]
_RATIOS: list[tuple[str, Callable[[_Row], str]]] = [
    ("ratio", lambda row: ratio_text(row["ratio"])),
    ("95 % interval", lambda row: interval_text(row["low"], row["high"])),
    ("verdict", lambda row: row["verdict"]),
    ("blocks", lambda row: str(row["blocks"])),
    ("p", lambda row: p_text(row["p"])),
    ("p (Holm)", lambda row: p_text(row["p_holm"])),
    ("least", lambda row: p_text(row["least_p_holm"])),
]
_PAGES: list[tuple[str, Callable[[_Row], str]]] = [
    ("CPU", lambda row: str(row["cpu"])),
    ("its node", lambda row: str(row["cpu_node"]) if row["cpu_node"] >= 0 else NOTHING),
    ("asked for", lambda row: row["asked"]),
    ("on nodes", lambda row: placed_text(row["placed"])),
    ("as asked", lambda row: share_text(row["as_asked"])),
    ("local", lambda row: share_text(row["local"])),
    ("method", lambda row: row["method"]),
    ("launches", lambda row: launches_text(row["launches"], row["of"], row["names"])),
]


def launches_text(count: int, of: int, names: str) -> str:
    """ "6 of 6"; of fewer than half their names as well: "1 of 6: 0003-host"."""
    return f"{count} of {of}" + (f": {names}" if 2 * count < of else "")


def share_text(share: float | None) -> str:
    """ "99.8 %"; "" of a share that is not known."""
    return NOTHING if pd.isna(share) else percent(share)


def placed_text(placed: str) -> str:
    """ "4: 8 MiB; 5: 4 KiB" of "4: 8388608; 5: 4096"."""
    pairs = (each.split(": ") for each in placed.split("; ") if each)
    return "; ".join(f"{node}: {bytes_text(int(size))}" for node, size in pairs) or NOTHING
