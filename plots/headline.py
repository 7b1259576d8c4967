"""The campaign in a few sentences: what a container costs an MPI job, why, and where not.

Draws nothing, and claims nothing that cost.py does not.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from experiments.statistics import EQUIVALENCE, Verdict
from plots.cost import base_name, bound, compared, is_slower
from plots.findings import OURS, Findings, in_order, rows
from plots.labels import (
    LAYOUTS,
    MPIS,
    USERLAND,
    arm_levels,
    arm_name,
    arm_place,
    bytes_text,
    interval_text,
    mpi_name,
    operation_name,
    ratio_text,
)

MPI = "mpi"  # the transport that every MPI job uses


def headline(found: Findings) -> list[str]:
    """A sentence each: what lost ways cost, arm by arm; what other arms cost; what direct pays.

    Empty where the campaign compares no container with anything, or has too few blocks.
    """
    every = compared(found)
    if found.machine or every.cells.empty:
        return []
    cells, groups = (each[each["arm"] != USERLAND] for each in (every.cells, every.groups))
    if (cells["verdict"] == Verdict.TOO_FEW).all():
        return []
    arms = sorted(set(cells["arm"]), key=arm_place)
    names = _names(arms)
    sentences, others = [], []
    for arm in arms:
        mine = cells[(cells["arm"] == arm) & (cells["transport"] == MPI)]
        losses = {loss.mpi: loss for loss in found.losses if loss.arm == arm}
        lost = mine[is_slower(mine) & mine["mpi"].isin(losses)]
        if lost.empty:
            others.append(arm)
            continue
        worst = [
            max(rows(lost[lost["mpi"] == mpi]), key=lambda cell: cell.ratio)
            for mpi in in_order(lost["mpi"], MPIS)
        ]
        loss = losses[worst[0].mpi]
        sentences.append(
            f"{names[arm]} makes {' and '.join(map(_cell, worst))}, because "
            f"{' and '.join(loss.ways)} is lost: {loss.effect}."
        )
    of_mpi = groups[groups["arm"].isin(others) & (groups["transport"] == MPI)]
    of_ours = groups[groups["transport"] == OURS]
    sentences += _bounded(" and ".join(names[arm] for arm in others), of_mpi, "an MPI's operations")
    sentences += _bounded("Every container", of_ours, f"the operations of {OURS}")
    return [*sentences, f"All {base_name(every.base)}."] if sentences else []


def _names(arms: Iterable[str]) -> dict[str, str]:
    """Arms by name, without the layout where that is the same in all."""
    layouts = {arm_levels(arm)[2] for arm in arms}
    ending = f", {LAYOUTS[min(layouts)]}" if len(layouts) == 1 else ""
    return {arm: arm_name(arm).removesuffix(ending) for arm in arms}


def _cell(cell: Any) -> str:
    """ "MPICH's Allreduce 1.73 times as long (4 MiB; from block to block 1.72 to 1.78)"."""
    return (
        f"{mpi_name(cell.mpi)}'s {operation_name(cell.operation)} up to {ratio_text(cell.ratio)} "
        f"times as long ({bytes_text(int(cell.bytes))}; from block to block "
        f"{interval_text(cell.least, cell.most)})"
    )


def _bounded(arms: str, groups: pd.DataFrame, what: str) -> list[str]:
    known = groups.dropna(subset=["low", "high"])
    if known.empty:
        return []
    alike = int((known["verdict"] == Verdict.EQUIVALENT).sum())
    return [
        f"{arms} changes the time of {what} by {bound(known)} over all sizes; {alike} of "
        f"{len(known)} are within ±{100 * EQUIVALENCE:.0f} %."
    ]
