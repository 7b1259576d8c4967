"""What a container costs an operation, and what Python does: in words. Draws nothing.

Three verdicts, as experiments.statistics.verdict gives them: slower or faster where the whole
interval lies beyond the noise floor, no cost where it lies within 2 % of none, else undecided.
What the cells of all sizes, MPIs, rank counts and kinds say is told together.
"""

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.statistics import (
    CLAIM_BLOCKS,
    EQUIVALENCE,
    FEWEST_BLOCKS,
    Verdict,
    needed_blocks,
)
from plots.findings import Findings, in_order, rows, usual
from plots.labels import (
    LAYOUTS,
    MPIS,
    NOTHING,
    OPERATIONS,
    USERLAND,
    arm_levels,
    arm_name,
    arm_place,
    bytes_text,
    environment_name,
    interval_text,
    mpi_name,
    operation_name,
    ranks_text,
    ratio_text,
)
from plots.style import TRANSPORTS

MOST_BLOCKS = 1000  # nobody would measure more
NONE = f"no cost larger than {100 * EQUIVALENCE:.0f} %"


@dataclass(frozen=True)
class Grid:
    """A small table: a line per arm, a column per transport and MPI, each cell a few words."""

    head: list[str]
    rows: list[list[str]]


def cost(found: Findings, operation: str) -> tuple[str, Grid | None]:
    """A sentence on the tuned container and on the worst one; a grid where there are more arms."""
    contained = found.containers[found.containers["arm"] != USERLAND]
    frame = usual(contained[contained["operation"] == operation])
    groups = usual(found.groups[found.groups["operation"] == operation])
    transports = in_order(frame["transport"], TRANSPORTS)
    arms = sorted(set(frame["arm"]), key=arm_place)
    first = _headline(arms)
    mine = frame[frame["arm"] == first]
    told = []
    for name in in_order(mine["transport"], transports):
        said = outcome(mine[mine["transport"] == name], found)
        every = groups[(groups["arm"] == first) & (groups["transport"] == name)]
        told.append(f"with {name}, {said}{'' if said == NONE else overall(every)}")
    sentence = f"In {container(first)}: {'; '.join(told)}."
    slower = frame[(frame["verdict"] == Verdict.DIFFERS) & (frame["ratio"] > 1)]
    worst = max(rows(slower), key=lambda cell: cell.ratio, default=None)
    if worst is not None and worst.arm != first:
        sentence += (
            f" The worst is {worst.transport} in {container(worst.arm)}, {_cell(worst, found)}."
        )
    return sentence + _ending(frame, found), _grid(frame, groups, arms, transports)


def files(found: Findings) -> str:
    """What other files than the host's cost, where there is no container."""
    frame = usual(found.containers[found.containers["arm"] == USERLAND])
    return f"Over the host's: {_by_transport(frame, found)}." + _ending(frame, found)


def isolation(found: Findings) -> tuple[str, ...]:
    """What each container costs over the same files without one, the one to run first."""
    frame = usual(found.isolation)
    arms = sorted(set(frame["arm"]), key=arm_place)
    first = _headline(arms)
    each = {arm: frame[frame["arm"] == arm] for arm in (first, *(a for a in arms if a != first))}
    return tuple(
        f"In {container(arm)}: {_by_transport(mine, found)}." + _ending(mine, found)
        for arm, mine in each.items()
    )


def _by_transport(frame: pd.DataFrame, found: Findings) -> str:
    return "; ".join(
        f"with {name}, {outcome(frame[frame['transport'] == name], found)}"
        for name in in_order(frame["transport"], TRANSPORTS)
    )


def losses(found: Findings) -> tuple[str, ...]:
    """What each operation of an MPI costs in each arm where it lost a way, a sentence each."""
    frame = usual(found.containers)
    told = []
    for loss in found.losses:
        mine = frame[(frame["mpi"] == loss.mpi) & (frame["arm"] == loss.arm)]
        mine = mine[mine["transport"] == "mpi"]
        each = [
            f"{operation_name(name)} {brief(mine[mine['operation'] == name], mine.iloc[:0])}"
            for name in in_order(mine["operation"], OPERATIONS)
        ]
        if each:
            told.append(
                f"What it cost {mpi_name(loss.mpi)} in {container(loss.arm)}, without "
                f"{' and '.join(loss.ways)}, as time over the host's: {'; '.join(each)}."
            )
    return tuple(told)


def container(arm: str) -> str:
    """ "one container (Docker, tuned)"."""
    environment, profile, layout = arm_levels(arm)
    kind = ", ".join(filter(None, (environment_name(environment), profile)))
    return f"{LAYOUTS.get(layout, layout)} ({kind})"


def outcome(frame: pd.DataFrame, found: Findings) -> str:
    """What the cells of one arm and transport say together."""
    differing = frame[frame["verdict"] == Verdict.DIFFERS]
    slower, faster = differing[differing["ratio"] > 1], differing[differing["ratio"] < 1]
    undecided = frame[frame["verdict"] == Verdict.UNDECIDED]
    parts = []
    if len(slower):
        worst = max(rows(slower), key=lambda cell: cell.ratio)
        parts.append(f"slower in {_of(slower, frame)}, up to {_cell(worst, found)}")
    if len(faster):
        best = min(rows(faster), key=lambda cell: cell.ratio)
        parts.append(f"faster in {_of(faster, frame)}, down to {_cell(best, found)}")
    if len(undecided):
        parts.append(
            f"undecided in {_of(undecided, frame)} (ratios {_range(undecided)}; "
            f"{_takes(undecided, found.floor)})"
        )
    if len(differing) + len(undecided) < len(frame):
        parts.append(NONE + (" in the others" if parts else ""))
    return ", ".join(parts)


def _takes(undecided: pd.DataFrame, floor: float) -> str:
    """What would decide half of the cells, were their ratios to stay where they are."""
    if undecided["low"].isna().all():
        return f"an interval takes {FEWEST_BLOCKS} paired blocks"
    needed = [
        needed_blocks(cell.ratio, cell.low, cell.high, int(cell.blocks), floor)
        for cell in rows(undecided)
    ]
    known = sorted(count for count in needed if count is not None and count <= MOST_BLOCKS)
    half = (len(needed) + 1) // 2
    if len(known) < half:
        return "to decide them takes a quieter machine"
    whom = "half of them" if len(needed) > 1 else "it"
    return f"about {known[half - 1]} paired blocks would decide {whom}"


def overall(groups: pd.DataFrame) -> str:
    """What all sizes together say, as the end of a sentence.

    Args:
        groups: rows of Findings.groups of one arm, operation and transport: one per MPI, kind ...
    """
    if len(groups) and (groups["verdict"] == Verdict.EQUIVALENT).all():
        return f", and {NONE} over all sizes together"
    if len(groups) != 1 or groups["low"].isna().any():
        return ""
    (group,) = rows(groups)
    value = f"{ratio_text(group.ratio)} times ({interval_text(group.low, group.high)})"
    return f", and over all sizes together {value}, {group.verdict}"


def brief(frame: pd.DataFrame, groups: pd.DataFrame) -> str:
    """The same in a few words: the largest effect, or that there is none, or that none is known."""
    differing = frame[frame["verdict"] == Verdict.DIFFERS]
    if frame.empty:
        return NOTHING
    if len(differing):
        most = max(rows(differing), key=lambda cell: abs(math.log(cell.ratio)))
        return f"{ratio_text(most.ratio)}× at {bytes_text(int(most.bytes))}"
    if (frame["verdict"] == Verdict.EQUIVALENT).all():
        return f"≤ {100 * EQUIVALENCE:.0f} %"
    if len(groups) and (groups["verdict"] == Verdict.EQUIVALENT).all():
        return f"≤ {100 * EQUIVALENCE:.0f} % over all sizes"
    return f"undecided, {_range(frame)}"


def python(found: Findings) -> str:
    """What a call from Python takes over the same call from C, at each operation's ends."""
    frame = usual(found.python)
    middle = float(frame["ratio"].median())
    parts = []
    for operation in in_order(frame["operation"], OPERATIONS):
        mine = frame[frame["operation"] == operation].sort_values("bytes")
        ends = rows(mine.iloc[[0, -1]] if len(mine) > 1 else mine)
        told = " and ".join(
            f"{ratio_text(cell.ratio)} at {bytes_text(int(cell.bytes))} "
            f"({_known(cell.low, cell.high)}, {cell.verdict})"
            for cell in ends
        )
        parts.append(f"{operation_name(operation)} {told}")
    mpis = ", ".join(mpi_name(mpi) for mpi in sorted(set(frame["mpi"])))
    return (
        f"With {mpis} on the host, a buffer call from Python takes {ratio_text(middle)} times as "
        f"long as the same call from C (IMB-MPI1) in the median cell: {'; '.join(parts)}."
        + _ending(frame, found)
    )


def _headline(arms: list[str]) -> str:
    """The arm that a user should run: tuned, in one container; else the first."""
    return min(arms, key=lambda arm: (arm_levels(arm)[1] not in ("tuned", ""), arm_place(arm)))


def _grid(
    frame: pd.DataFrame, groups: pd.DataFrame, arms: list[str], transports: list[str]
) -> Grid | None:
    mpis = in_order(frame["mpi"], MPIS)
    if len(arms) * len(mpis) == 1:
        return None
    columns = [(transport, mpi) for transport in transports for mpi in mpis]
    names = [f"{name}, {mpi_name(mpi)}" if len(mpis) > 1 else name for name, mpi in columns]
    keys = ["arm", "transport", "mpi"]
    cells, wholes = (dict(iter(each.groupby(keys))) for each in (frame, groups))
    none, nothing = frame.iloc[:0], groups.iloc[:0]
    return Grid(
        ["container", *names],
        [
            [arm_name(arm)]
            + [
                brief(cells.get((arm, *column), none), wholes.get((arm, *column), nothing))
                for column in columns
            ]
            for arm in arms
        ],
    )


def _cell(cell: Any, found: Findings) -> str:
    times = found.times
    told = [bytes_text(int(cell.bytes))]
    told += [mpi_name(cell.mpi)] if times["mpi"].nunique() > 1 else []
    told += [ranks_text(int(cell.ranks))] if times["ranks"].nunique() > 1 else []
    told += [str(cell.kind)] if times["kind"].nunique() > 1 else []
    return (
        f"{ratio_text(cell.ratio)} times (95 % interval {interval_text(cell.low, cell.high)}; "
        f"{', '.join(told)})"
    )


def _known(low: float, high: float) -> str:
    return interval_text(low, high).replace(NOTHING, "no interval")


def _of(part: pd.DataFrame, whole: pd.DataFrame) -> str:
    return f"{len(part) if len(part) < len(whole) else 'all'} of {len(whole)} cells"


def _range(frame: pd.DataFrame) -> str:
    low, high = ratio_text(frame["ratio"].min()), ratio_text(frame["ratio"].max())
    return low if low == high else f"{low} to {high}"


def _ending(frame: pd.DataFrame, found: Findings) -> str:
    """What keeps an effect from being a claim."""
    if not math.isfinite(found.floor):
        return " This campaign has no A/A pair, so its noise floor is unknown and nothing differs."
    if found.blocks < CLAIM_BLOCKS and (frame["verdict"] == Verdict.DIFFERS).any():
        return f" Seen in {found.blocks} paired blocks; a claim needs {CLAIM_BLOCKS}."
    return ""
