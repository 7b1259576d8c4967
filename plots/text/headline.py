"""The campaign in a few sentences: what a container costs an MPI job, why, and where not.

Draws nothing, and claims nothing that cost.py does not.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.data_path import Loss
from experiments.analysis.findings.selection import at, rows
from experiments.analysis.mpi_transport_log import SINGLE_COPY
from experiments.analysis.statistics import EQUIVALENCE, Verdict
from experiments.model.arms import USERLAND, arm_key, named
from plots.layout import data_path_text
from plots.layout.labels import (
    LAYOUTS,
    arm_name,
    bytes_text,
    mpi_name,
    operation_name,
)
from plots.text.cost import (
    base_name,
    bound,
    claimed,
    compared,
    effects,
    ending,
    is_slower,
    widest,
)

MPI = "mpi"  # the transport that every MPI job uses
LARGE = 4096  # bytes from which an MPI may copy at once


def headline(found: Findings) -> list[str]:
    """A sentence each: what lost ways cost, arm by arm; what other arms cost; what direct pays.

    Empty where the campaign compares no container with anything, or has too few blocks.
    """
    every = compared(found)
    if found.machine or every.cells.empty:
        return []
    cells = every.cells[every.cells["arm"] != USERLAND]
    if (cells["verdict"] == Verdict.TOO_FEW).all():
        return []
    arms = sorted(set(cells["arm"]), key=arm_key)
    names = _names(arms)
    sentences, others = [], []
    for arm in arms:
        mine = at(cells, arm=arm, transport=MPI)
        explained = _explained(mine[is_slower(mine)], found.data_paths.losses, arm)
        sentences += [f"{names[arm]} makes {each}." for each in explained]
        others += [] if explained else [arm]
    kept = cells["arm"].isin(others) & (cells["transport"] == MPI)
    changed = " and ".join(names[arm] for arm in others)
    verb = "change" if len(others) > 1 else "changes"
    sentences += _bounded(f"{changed} {verb}", cells[kept], "an MPI's operations")
    own = at(cells, transport=found.ours)
    sentences += _bounded("Every container changes", own, f"the operations of {found.ours}")
    end = f"All {base_name(every.base)}.{ending(cells, found)}"
    return [*sentences, end] if sentences else []


def _explained(slower: pd.DataFrame, losses: Iterable[Loss], arm: str) -> list[str]:
    """What each lost way costs where it was lost, a clause for each way and effect.

    Copying at once serves large messages alone: what slows small ones is something else.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for loss in losses:
        mine = slower[slower["mpi"] == loss.mpi] if loss.arm == arm else slower[:0]
        if tuple(loss.ways) == (SINGLE_COPY,):
            mine = mine[mine["bytes"] >= LARGE]
        if len(mine):
            ways = " and ".join(loss.ways)
            worst = max(rows(mine), key=lambda cell: cell.ratio)
            found.setdefault((ways, data_path_text.effect(loss)), []).append(_cell(worst))
    return [
        f"{' and '.join(cells)}, because {ways} {'are' if ' and ' in ways else 'is'} lost: {effect}"
        for (ways, effect), cells in found.items()
    ]


def _names(arms: Iterable[str]) -> dict[str, str]:
    """Arms by name, without the layout where that is the same in all."""
    layouts = {named(arm).layout for arm in arms}
    ending = f", {LAYOUTS[min(layouts)]}" if len(layouts) == 1 else ""
    return {arm: arm_name(arm).removesuffix(ending) for arm in arms}


def _cell(cell: Any) -> str:
    """ "MPICH's Allreduce up to 1.73 times (1.70 to 1.77) as long (4 MiB)"."""
    return (
        f"{mpi_name(cell.mpi)}'s {operation_name(cell.operation)} up to {claimed(cell)} as long "
        f"({bytes_text(cell.bytes)})"
    )


def _bounded(change: str, cells: pd.DataFrame, what: str) -> list[str]:
    """The bound of single cells, and the farthest of those that differ, in each direction."""
    known = cells.dropna(subset=["low", "high"])
    if known.empty:
        return []
    alike = int((known["verdict"] == Verdict.EQUIVALENT).sum())
    differing = [
        f" {len(mine)} of {len(cells)} are {word}, most of all {_cell(most)}."
        for word, mine, most in effects(cells)
    ]
    where = widest(known, "operation")
    return [
        f"{change} the time of {what} by {bound(known)}, as the bound of every single cell{where}; "
        f"{alike} of {len(known)} are within ±{100 * EQUIVALENCE:.0f} %.{''.join(differing)}"
    ]
