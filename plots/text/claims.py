"""What may be claimed, in words: answers, and what containers and Python cost. Draws nothing.

A cost is claimed where an interval that holds for all cells of the comparison at once is beyond the
noise floor. Of all other cells the bound is given: the least and the largest cost that the interval
of any single cell and its floor allow, never the median over cells. Ranges from size to size are
written with "times", bounds in per cent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.campaign import BASELINES, Campaign
from experiments.analysis.container_steps import FILES
from experiments.analysis.ratios import LEAST_CELLS, band
from experiments.analysis.selection import at, in_order, of_first_arm, of_real_memory, rows, usual
from experiments.analysis.statistics import (
    CONFIDENCE,
    FEWEST_BLOCKS,
    Verdict,
    bounds,
    short_of_claim,
)
from experiments.model.arms import HOST, USERLAND, arm_key, named
from experiments.model.contender_names import FORMS
from experiments.model.quantities import (
    NOTHING,
    bound_text,
    bytes_text,
    counted,
    interval_text,
    ranks_text,
    ratio_text,
)
from plots.layout.labels import MPIS, OPERATIONS, arm_name, in_words, mpi_name, operation_name
from plots.layout.style import TRANSPORTS

CELL = ("operation", "transport", "bytes", "ranks")
"""What names a cell in a sentence."""


@dataclass(frozen=True)
class Grid:
    """A small table: a line per arm, a column per transport and MPI, each cell a few words."""

    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Answer:
    """A question, one sentence (or two) that answers it, and the evidence.

    Attributes:
        figure: topic of the drawings that show it (figure_layout.Drawing), or "".
        points: a sentence each.
    """

    question: str
    sentence: str
    grid: Grid | None = None
    points: tuple[str, ...] = ()
    figure: str = ""


@dataclass(frozen=True)
class Compared:
    """Container arms over one other, by cell."""

    base: str
    cells: pd.DataFrame


def compared(campaign: Campaign) -> Compared:
    """What containers are best compared with: the same files without one, else the host."""
    if not campaign.isolation.empty:
        return Compared(USERLAND, of_real_memory(usual(campaign.isolation)))
    return Compared(HOST, of_real_memory(usual(campaign.containers)))


def base_name(base: str) -> str:
    """ "over the same files without a container"."""
    return "over the same files without a container" if base == USERLAND else f"over the {base}"


def cost(campaign: Campaign, operation: str) -> tuple[str, Grid | None]:
    """A sentence on the arm to run, which is tuned, and on the worst; a grid of several arms."""
    every = compared(campaign)
    frame = at(every.cells, operation=operation)
    arms = sorted(set(frame["arm"]), key=arm_key)
    first = min(arms, key=lambda arm: named(arm).profile not in ("tuned", ""))
    sentence = f"{arm_name(first)}: {by_transport(at(frame, arm=first), campaign)}"
    worst = max(rows(frame[is_slower(frame)]), key=lambda cell: cell.ratio, default=None)
    if worst is not None and worst.arm != first:
        sentence += f" The worst is {arm_name(worst.arm)} with {worst.transport}: "
        sentence += f"{cell_text(worst, campaign)}."
    return sentence + ending(frame, campaign), _grid(frame, arms)


def files(campaign: Campaign) -> str:
    """What other files than the host's cost, where there is no container."""
    frame = of_real_memory(usual(at(campaign.steps, step=FILES)))
    return by_transport(frame, campaign) + ending(frame, campaign)


def by_transport(frame: pd.DataFrame, campaign: Campaign) -> str:
    """ "direct -0.9 % to +0.7 %; mpi 1.21 to 1.73 times as long in 9 of 12 cells (...)."."""
    names = in_order(frame["transport"], TRANSPORTS)
    parts = [f"{name} {outcome(at(frame, transport=name), campaign)}" for name in names]
    return "; ".join(parts) + "."


def is_slower(frame: pd.DataFrame) -> "pd.Series[bool]":
    """Rows that take longer, beyond the noise floor."""
    return (frame["verdict"] == Verdict.DIFFERS) & (frame["ratio"] > 1)


def effects(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, Any]]:
    """("slower", the rows beyond the noise floor, the slowest), and "faster"; what there is."""
    differing = frame[frame["verdict"] == Verdict.DIFFERS]
    slower = differing["ratio"] > 1
    for word, which, pick in (("slower", slower, max), ("faster", ~slower, min)):
        if which.any():
            yield word, differing[which], pick(rows(differing[which]), key=lambda cell: cell.ratio)


def outcome(frame: pd.DataFrame, campaign: Campaign) -> str:
    """What the cells of one arm and transport say together."""
    if (frame["verdict"] == Verdict.TOO_FEW).all():
        return f"{span(frame)} times as long in {_of(frame, frame)}, {few(frame)}"
    parts = []
    for _, mine, most in effects(frame):
        cell = cell_text(most, campaign)
        times = f"{span(mine)} times as long in {_of(mine, frame)} ({cell})"
        parts.append(times if len(mine) > 1 else cell)
    rest = frame[frame["verdict"] != Verdict.DIFFERS]
    if len(rest):
        where = "elsewhere" if parts else "in every cell"
        parts.append(f"{bound(rest)} {where}{widest(rest)}")
    return ", ".join(parts)


def bound(frame: pd.DataFrame) -> str:
    """The least and the largest cost that intervals and noise floors of single rows allow."""
    known = frame.dropna(subset=["low", "high"])
    if known.empty:
        return f"{span(frame)} times as long, {few(frame)},"
    ends = [bounds(row.low, row.high, row.floor) for row in rows(known)]
    return bound_text(min(low for low, _ in ends), max(high for _, high in ends))


def widest(frame: pd.DataFrame, *factors: str) -> str:
    """ " (widest at 1 KiB, MPICH)": the cell with the farthest bound; "" for a single row."""
    known = frame.dropna(subset=["low", "high"])
    if len(known) < 2:
        return ""
    cell = max(rows(known), key=lambda row: max(row.high, 1 / row.low))
    return f" (widest at {in_words(cell, 'bytes', *factors, *_varied(known))})"


def few(frame: pd.DataFrame) -> str:
    """ "with no interval: 2 blocks of the 6 that it takes"."""
    blocks = counted(int(frame["blocks"].max()), "block")
    return f"with no interval: {blocks} of the {FEWEST_BLOCKS} that it takes"


def brief(frame: pd.DataFrame) -> str:
    """A verdict in a few words: the largest cost and its size, else the bound of all cells."""
    if frame.empty:
        return NOTHING
    differing = frame[frame["verdict"] == Verdict.DIFFERS]
    if len(differing):
        most = max(rows(differing), key=lambda cell: max(cell.ratio, 1 / cell.ratio))
        return f"{ratio_text(most.ratio)}× at {bytes_text(most.bytes)}"
    if frame["low"].isna().all():
        return f"{span(frame)}×, {few(frame)}"
    return bound(frame)


def tails(campaign: Campaign) -> str:
    """What the slowest operations take, or "" where too few were timed to know."""
    frame = of_real_memory(usual(campaign.tails))
    parts = []
    for arm in sorted(set(frame.get("arm", ())), key=arm_key):
        mine = frame[(frame["arm"] == arm) & (frame["transport"] != "pickle")]
        slower = mine[is_slower(mine)]
        if mine["low"].isna().all():
            continue
        if len(slower):
            most = max(rows(slower), key=lambda cell: cell.ratio)
            parts.append(
                f"{arm_name(arm)}: {span(slower)} times as long in {_of(slower, mine)} "
                f"({cell_text(most, campaign)})"
            )
        else:
            where = widest(mine, "operation", "transport")
            parts.append(f"{arm_name(arm)}: {bound(mine)} in {_of(mine, mine)}{where}")
    return "; ".join(parts) + f".{ending(frame, campaign)}" if parts else ""


def losses(campaign: Campaign) -> tuple[str, ...]:
    """What each operation of an MPI costs in each arm where it lost a way, a sentence each."""
    every = compared(campaign)
    sentences = []
    for loss in campaign.data_paths.losses:
        mine = at(every.cells, mpi=loss.mpi, arm=loss.arm, transport="mpi")
        costs = [
            f"{operation_name(name)} {brief(at(mine, operation=name))}"
            for name in in_order(mine["operation"], OPERATIONS)
        ]
        if costs:
            sentences.append(
                f"Without {' and '.join(loss.ways)}, {mpi_name(loss.mpi)} in {arm_name(loss.arm)} "
                f"takes, {base_name(every.base)}: {'; '.join(costs)}."
            )
    return tuple(sentences)


def python(campaign: Campaign) -> str:
    """What a call from Python takes over the same call from C, by MPI and number of ranks."""
    every = usual(campaign.python)
    groups = every.groupby(["mpi", "ranks"], observed=True)
    return " ".join(_python(frame) for _, frame in groups) + ending(every, campaign)


def _python(frame: pd.DataFrame) -> str:
    """Costs of one MPI and number of ranks, at the smallest and largest size."""
    first, middle = rows(frame)[0], float(frame["ratio"].median())
    parts = []
    for operation in in_order(frame["operation"], OPERATIONS):
        mine = at(frame, operation=operation).sort_values("bytes")
        ends = rows(mine.iloc[[0, -1]] if len(mine) > 1 else mine)
        at_ends = " and ".join(
            f"{ratio_text(cell.ratio)} at {bytes_text(cell.bytes)} "
            f"({interval_text(cell.low, cell.high).replace(NOTHING, 'no interval')})"
            for cell in ends
        )
        parts.append(f"{operation_name(operation)} {at_ends}")
    return (
        f"With {mpi_name(first.mpi)} and {ranks_text(first.ranks)} on the host, a buffer call from "
        f"Python takes {ratio_text(middle)} times as long as the same call from C (IMB-MPI1) in "
        f"the median cell: {'; '.join(parts)}."
    )


def cell_text(cell: Any, campaign: Campaign) -> str:
    """ "1.73 times (1.70 to 1.77) at 4 MiB, MPICH"; the interval holds for all cells at once."""
    return f"{claimed(cell)} at {in_words(cell, 'bytes', *_varied(campaign.times))}"


def claimed(cell: Any) -> str:
    """ "1.73 times (1.70 to 1.77)": a ratio that is one of many, with its simultaneous interval."""
    return f"{ratio_text(cell.ratio)} times ({interval_text(cell.joint_low, cell.joint_high)})"


def _varied(frame: pd.DataFrame) -> list[str]:
    return [name for name in ("mpi", "ranks", "kind") if frame[name].nunique() > 1]


def ending(frame: pd.DataFrame, campaign: Campaign) -> str:
    """How sure the rows are: what the intervals hold, what has none, what has no noise floor."""
    if campaign.twins.empty:
        return " This campaign has no A/A pair, so its noise floor is unknown and nothing differs."
    sentences = []
    bands = {band(int(size)): None for size in frame.loc[frame["floor"].isna(), "bytes"]}
    if bands:
        sentences.append(
            f"Fewer than {LEAST_CELLS} A/A cells are {' and '.join(bands)}: the noise floor there "
            "is unknown and nothing differs: measure more sizes or operations."
        )
    lacking = int(frame["low"].isna().sum())
    if 0 < lacking < len(frame):
        sentences.append(
            f"{lacking} of {len(frame)} cells have no interval: fewer than {FEWEST_BLOCKS} blocks."
        )
    differing = frame[frame["verdict"] == Verdict.DIFFERS]
    if len(differing):
        sentences.append(
            f"Intervals in brackets hold for all cells at once ({100 * CONFIDENCE:.0f} %)."
        )
        sentences.append(short_of_claim(int(differing["blocks"].min())))
    return "".join(f" {text}" for text in sentences if text)


def _grid(frame: pd.DataFrame, arms: list[str]) -> Grid | None:
    mpis = in_order(frame["mpi"], MPIS)
    if len(arms) * len(mpis) == 1:
        return None
    transports = in_order(frame["transport"], TRANSPORTS)
    columns = [(transport, mpi) for transport in transports for mpi in mpis]
    names = [f"{name}, {mpi_name(mpi)}" if len(mpis) > 1 else name for name, mpi in columns]

    def cell(arm: str, name: str, mpi: str) -> str:
        return brief(at(frame, arm=arm, transport=name, mpi=mpi))

    body = [[arm_name(arm), *(cell(arm, *column) for column in columns)] for arm in arms]
    return Grid(["container", *names], body)


def _of(part: pd.DataFrame, whole: pd.DataFrame) -> str:
    return f"{len(part) if len(part) < len(whole) else 'all'} of {len(whole)} cells"


def span(frame: pd.DataFrame) -> str:
    """ "1.04 to 1.20", the least and the most of all rows; once where both print alike."""
    low, high = ratio_text(frame["ratio"].min()), ratio_text(frame["ratio"].max())
    return low if low == high else f"{low} to {high}"


def absent(question: str, level: str, campaign: Campaign) -> Answer:
    """Why a level that was asked for was nowhere measured."""
    return Answer(question, f"Not measured. {level}: {campaign.unmeasured[level]}")


def slowdown(frame: pd.DataFrame, campaign: Campaign, done: str) -> str:
    """How long something takes beside something else, a sentence for each form of calls.

    Of one arm, and of real memory where there is any: arms differ in their data paths, and emulated
    kinds are the same memory again.
    """
    every = of_real_memory(of_first_arm(frame))
    arm = str(every["arm"].iloc[0])
    forms = in_order(every["form"], FORMS)
    place = "" if arm in BASELINES else "on the host, " if arm == HOST else f"{arm_name(arm)}: "
    sentences = [
        _slowdown_of(at(every, form=form), done, place, f"{form} calls, " * (len(forms) > 1))
        for form in forms
    ]
    return " ".join(sentences) + ending(every, campaign)


def _slowdown_of(frame: pd.DataFrame, done: str, place: str, calls: str) -> str:
    middle = float(np.median(frame["ratio"]))
    opening = f"{place}{calls}the median cell"
    start = (
        f"{opening[0].upper()}{opening[1:]} takes {ratio_text(middle)} times as long {done} "
        f"({span(frame)} from cell to cell of {len(frame)})"
    )
    if (frame["verdict"] == Verdict.TOO_FEW).all():
        return f"{start}, {few(frame)}."
    parts = [
        f"{word} beyond the noise floor in {len(mine)}, most in {in_words(most, *CELL)}: "
        f"{claimed(most)}"
        for word, mine, most in effects(frame)
    ]
    rest = frame[frame["verdict"] != Verdict.DIFFERS]
    if len(rest):
        parts.append(f"{bound(rest)} in {'the other' if parts else 'all'} {len(rest)}")
    return f"{start}: {'; '.join(parts)}."
