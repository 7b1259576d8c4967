"""The campaign in three sentences: what a container costs an MPI job, where more, and the remedy.

Draws nothing, and claims nothing that claims.py does not.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.data_path import Loss
from experiments.analysis.mpi_transport_log import SINGLE_COPY
from experiments.analysis.selection import at
from experiments.analysis.statistics import EQUIVALENCE, Verdict
from experiments.model.arms import USERLAND, arm_key, named
from experiments.model.quantities import bytes_text
from plots.layout.labels import LAYOUTS, arm_name, mpi_name, operation_name
from plots.text import causes, claims

MPI = "mpi"  # the transport that every MPI job uses
LARGE = 4096  # bytes from which an MPI may copy at once
TUNED = "profile tuned"
FLAG = "for a job of your own: --security-opt seccomp=build/seccomp/tuned.json, from ./inv build"


@dataclass(frozen=True)
class Headline:
    """What a campaign says of containers.

    Attributes:
        sentences: at most three: what a container costs where no way is lost, what lost ways cost,
            and what gets them back.
        conditions: single cells, counts, and how sure all that is.
    """

    sentences: list[str]
    conditions: list[str]


NOTHING_SAID = Headline([], [])


def headline(campaign: Campaign) -> Headline:
    """Empty where the campaign compares no container with anything, or has too few blocks."""
    every = claims.compared(campaign)
    if campaign.machine or every.cells.empty:
        return NOTHING_SAID
    cells = every.cells[every.cells["arm"] != USERLAND]
    if (cells["verdict"] == Verdict.TOO_FEW).all():
        return NOTHING_SAID
    arms = sorted(set(cells["arm"]), key=arm_key)
    names, clauses = _names(arms), {}
    for arm in arms:
        mine = at(cells, arm=arm, transport=MPI)
        if explained := _explained(mine, campaign.data_paths.losses, arm):
            clauses[arm] = explained
    others = [arm for arm in arms if arm not in clauses]
    kept = at(cells[cells["arm"].isin(others)], transport=MPI)
    own = at(cells, transport=campaign.ours)
    bounded = [
        *_bounded(" and ".join(names[arm] for arm in others), kept, "an MPI's times"),
        *_bounded("every container", own, f"those of {campaign.ours}"),
    ]
    lost = [f"{names[arm]} makes {text}" for arm, texts in clauses.items() for text in texts]
    sentences = [
        f"{', and '.join(bounded)}, {claims.base_name(every.base)}." if bounded else "",
        f"{'; '.join(lost)}." if lost else "",
        _mended(campaign.data_paths.losses, clauses),
    ]
    conditions = [*_counted(kept, "an MPI"), *_counted(own, campaign.ours)]
    sentences = [sentence for sentence in sentences if sentence]
    ends = [*conditions, claims.ending(cells, campaign).strip()]
    return Headline(sentences, ends) if sentences else NOTHING_SAID


def _explained(cells: pd.DataFrame, losses: Iterable[Loss], arm: str) -> list[str]:
    """What each lost way costs where it was lost, a clause for each way and effect.

    Copying at once serves large messages alone: what slows small ones is something else. Where the
    loss makes another size faster, that is said as well.
    """
    clauses: dict[tuple[str, str], list[str]] = {}
    for loss in losses:
        mine = cells[cells["mpi"] == loss.mpi] if loss.arm == arm else cells[:0]
        if tuple(loss.ways) == (SINGLE_COPY,):
            mine = mine[mine["bytes"] >= LARGE]
        extremes = {word: most for word, _, most in claims.effects(mine)}
        if "slower" in extremes:
            text = _cell(extremes["slower"])
            if faster := extremes.get("faster"):
                text += (
                    f", but {operation_name(faster.operation)} {claims.claimed(faster)} as long at "
                    f"{bytes_text(faster.bytes)}"
                )
            ways = " and ".join(loss.ways)
            clauses.setdefault((ways, causes.effect(loss)), []).append(text)
    return [
        f"{' and '.join(cells)}, because {ways} {'are' if ' and ' in ways else 'is'} lost: {effect}"
        for (ways, effect), cells in clauses.items()
    ]


def _mended(losses: Iterable[Loss], arms: Collection[str]) -> str:
    """What gets back the ways that these arms lost, and the flag for one's own container."""
    remedies = [causes.remedy(loss) for loss in losses if loss.arm in arms]
    remedies = list(dict.fromkeys(filter(None, remedies)))
    if not remedies:
        return ""
    text = "; ".join(remedies)
    flag = f" ({FLAG})" if TUNED in text else ""
    return f"{text[0].upper()}{text[1:]}{flag}."


def _names(arms: Iterable[str]) -> dict[str, str]:
    """Arms by name, without the layout where that is the same in all."""
    layouts = {named(arm).layout for arm in arms}
    ending = f", {LAYOUTS[min(layouts)]}" if len(layouts) == 1 else ""
    return {arm: arm_name(arm).removesuffix(ending) for arm in arms}


def _cell(cell: Any) -> str:
    """ "MPICH's Allreduce up to 1.73 times (1.70 to 1.77) as long (4 MiB)"."""
    return (
        f"{mpi_name(cell.mpi)}'s {operation_name(cell.operation)} up to {claims.claimed(cell)} "
        f"as long ({bytes_text(cell.bytes)})"
    )


def _bounded(arms: str, cells: pd.DataFrame, times: str) -> list[str]:
    """The bound of single cells, a clause; none where no cell has an interval."""
    known = cells.dropna(subset=["low", "high"])
    if known.empty:
        return []
    verb = "change" if " and " in arms else "changes"
    where = claims.widest(known, "operation")
    return [f"{arms} {verb} {times} by {claims.bound(known)} in every single cell{where}"]


def _counted(cells: pd.DataFrame, caller: str) -> list[str]:
    """How many cells are as good as without a container, and the farthest in each direction."""
    known = cells.dropna(subset=["low", "high"])
    if known.empty:
        return []
    alike = int((known["verdict"] == Verdict.EQUIVALENT).sum())
    texts = [f"Of cells of {caller}, {alike} of {len(known)} are within ±{100 * EQUIVALENCE:.0f} %"]
    texts += [
        f"{len(part)} of {len(cells)} are {word}, most of all {_cell(most)}"
        for word, part, most in claims.effects(cells)
    ]
    return [f"{'; '.join(texts)}."]
