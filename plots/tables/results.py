"""The tables behind the figures: which columns they have, and in which words.

Computes nothing that findings.py has not computed; table.py writes them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from experiments.analysis.findings import BASELINE, PLACEMENTS, Findings
from experiments.analysis.selection import places
from experiments.analysis.statistics import EQUIVALENCE
from experiments.model.arms import HOST, arm_key
from experiments.model.workloads import COMPUTING
from plots.layout.labels import MPIS, OPERATIONS, STEPS, floor_text
from plots.layout.style import TRANSPORTS
from plots.tables.columns import FACTORS, GROUPS, PAGES, RATIOS, STEP_TIMES, TIMES, Column, Row
from plots.tables.published import comparison
from plots.tables.table import Table

_OVER_BLOCKS = (
    "median over blocks with its exact 95 % interval (order statistics: it covers 97 to 99 of 100 "
    "with 6 to 10 blocks)."
)
_PAIRED = (
    "turn by turn where launches took turns, else of launch values; "
    f"{_OVER_BLOCKS} A ratio differs from 1 where an interval that holds for all rows of the table "
    "at once (joint_low and joint_high in the CSV) is beyond the noise floor of its size; two arms "
    "are equivalent where interval and floor are within "
    f"±{100 * EQUIVALENCE:.0f} %; all others are bounded by both. p is of Wilcoxon's signed-rank "
    "test, Holm-corrected over the sizes of a series; the least is what the blocks of that series "
    "can reach."
)
_WIDEST = (
    "Widest: the interval of the single size that may cost most; the median hides what one size "
    "costs, so that a group is equivalent only where each of its sizes is."
)
_ALWAYS = ("operation", "bytes", "rank")  # factors that have a column even if they never vary


class _Kind(NamedTuple):
    """A kind of table: its words, the findings it shows, and its columns after the factors.

    Attributes:
        caption: {floors} in it is replaced by the noise floors, {ours} by our transport.
    """

    name: str
    title: str
    caption: str
    data: Callable[[Findings], pd.DataFrame]
    columns: tuple[Column, ...] = RATIOS
    detail: bool = False


def tables(found: Findings) -> list[Table]:
    """Every table that this campaign fills."""
    filled = [kind for kind in _KINDS if not kind.data(found).empty]
    return [*comparison(found), *(_table(kind, found) for kind in filled)]


def _table(kind: _Kind, found: Findings) -> Table:
    data = kind.data(found)
    factors = [key for key in FACTORS if key in data]
    varied = [key for key in factors if data[key].nunique() > 1 or key in _ALWAYS]
    ordered = data.sort_values(varied, key=_reading_order, kind="stable")
    shown = [_with_kind(row) for row in ordered.to_dict("records")]
    constant = [
        f"{FACTORS[key].head} {FACTORS[key].text(shown[0])}" for key in factors if key not in varied
    ]
    columns = [*(FACTORS[key] for key in varied), *kind.columns]
    return Table(
        kind.name,
        kind.title,
        _caption(kind, found, constant),
        data,
        head=[column.head for column in columns],
        rows=[[column.text(row) for column in columns] for row in shown],
        numeric=[column.numeric for column in columns],
        factors=len(varied),
        cells=[int(index) for index in ordered.index],
        detail=kind.detail,
    )


def _caption(kind: _Kind, found: Findings, constant: list[str]) -> str:
    """What the table shows, how, and what all its rows have in common."""
    sentences = [
        found.machine,
        kind.caption.format(floors=floor_text(found.floors), ours=found.ours),
    ]
    sentences += [_paired(kind.data(found))] if kind.columns is RATIOS else []
    sentences += [f"All rows: {', '.join(constant)}."] if constant else []
    return " ".join(filter(None, sentences))


def _with_kind(row: Row) -> Row:
    """The row with "(emulated)" beside its kind of memory where that is so."""
    return row | {"kind": f"{row['kind']} (emulated)"} if row.get("emulated") else row


def _paired(data: pd.DataFrame) -> str:
    """How ratios are paired, tested and worded."""
    bindings = "binding" in set(data.get("factor", ()))
    others = " (of bindings the n-th block of one with the n-th of the other)"
    return f"Ratios paired within a block{others * bindings}, {_PAIRED}"


def _with_levels(placements: pd.DataFrame) -> pd.DataFrame:
    """Where both factors vary, a row that compares one holds none of its levels, but two."""
    both = {name: f"{worse} over {better}" for name, worse, better in PLACEMENTS}
    return placements.fillna({name: text for name, text in both.items() if name in placements})


def _reading_order(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Names in the order in which figures show them; numbers as they are."""
    if column.name in ("ranks", "rank", "bytes"):
        return column
    if column.name == "arm":
        return places(column, sorted(set(column), key=arm_key))
    return places(column, (HOST, BASELINE, *OPERATIONS, *TRANSPORTS, *MPIS))


_KINDS = (
    _Kind(
        "times",
        "Times",
        "Median over launches of the launch median, with its 95 % nonparametric interval. p95 and "
        "p99: medians over launches too; a launch of fewer than 100 iterations has none. Memory "
        "bound: the least time that the copy bandwidth allows. Skew: from the first rank's begin "
        "after the barrier to the last one's. Bus: the bus bandwidth, which is a rank's largest "
        "buffer over the median, with r ranks times 2(r - 1)/r for Allreduce and (r - 1)/r for "
        "Allgather and Reduce_scatter_block. n: the iterations of all launches. Group: how many "
        "operations an iteration times back to back, at most.",
        lambda found: found.times[~found.times["operation"].isin(COMPUTING)],
        TIMES,
    ),
    _Kind(
        "workloads",
        "Computation and communication",
        "Time of a step; of the same step without communication, which took turns with it; and "
        "the share of the step that is communication. p95: median over launches too. n: the steps "
        "of all launches.",
        lambda found: found.workloads,
        STEP_TIMES,
    ),
    _Kind(
        "transport",
        "Transports",
        "Time with the transport named over time with {ours}, over the same buffers in the same "
        "launch.",
        lambda found: found.transports,
    ),
    _Kind(
        "speedup",
        "Speed-up of high-bandwidth memory",
        f"Time in {BASELINE} memory over time in the kind named.",
        lambda found: found.speedups,
    ),
    _Kind(
        "placement",
        "Placement",
        "Time spread over packed (binding), remote over local (locality).",
        lambda found: _with_levels(found.placements),
    ),
    _Kind(
        "container",
        "Cost of a container",
        f"Time in the arm named over time on the {HOST}.",
        lambda found: found.containers,
    ),
    _Kind(
        "groups",
        "Cost of a container over all sizes",
        f"Time in the arm named over time on the {HOST}: in each block the median over the "
        f"sizes, then {_OVER_BLOCKS} {_WIDEST} p is of Wilcoxon's signed-rank test, not corrected.",
        lambda found: found.groups,
        GROUPS,
    ),
    _Kind(
        "isolation",
        "Cost of a container over the same files without one",
        "Time in the arm named over time in the arm userland, which runs the image's files on "
        "the host.",
        lambda found: found.isolation,
    ),
    _Kind(
        "chain",
        "Cost of each step from the host to a container",
        "Time in the arm above over time in the arm below, the step before it: in each block "
        f"the median over the sizes, then {_OVER_BLOCKS} {_WIDEST} "
        + " ".join(f"{name.capitalize()}: {what}." for name, what in STEPS.items()),
        lambda found: found.whole_steps,
        GROUPS,
    ),
    _Kind(
        "tails",
        "Cost of a container to the slowest operations",
        "p99 of a launch in the arm named over that in the arm userland, or on the "
        f"{HOST} where there is none.",
        lambda found: found.tails,
    ),
    _Kind(
        "twins",
        f"The {HOST} against itself",
        f"Time of the repeated {HOST} arm over the first: no container causes this. {{floors}}",
        lambda found: found.twins,
        detail=True,
    ),
    _Kind(
        "python",
        "Cost of Python",
        f"Time of an MPI's buffer calls from Python on the {HOST} over the same calls from C, "
        "by the Intel MPI Benchmarks (IMB-MPI1).",
        lambda found: found.python,
    ),
    _Kind(
        "baselines",
        "Python without MPI",
        f"Time with threads or multiprocessing of Python over time with the {HOST}'s MPI calls "
        "from Python: of buffers for threads and shared memory, of objects for queues.",
        lambda found: found.baselines,
    ),
    _Kind(
        "pages",
        "Where every rank and every page was",
        "The CPU of each rank and its node; the nodes asked for; bytes of the rank's buffers on "
        "each node, as the kernel reports by the method named. Local: bytes on the node of the CPU "
        "or on a node without CPUs beside it. Launches of an arm that agree to the byte share a "
        "row.",
        lambda found: found.pages,
        PAGES,
    ),
)
