"""Which part of the findings gets a drawing of its own, and what heads its panels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from experiments.analysis.arm_order import USERLAND, arm_key, arm_levels, in_container
from experiments.analysis.findings.selection import in_order
from plots.layout.labels import LAYOUTS, MPIS, environment_name, mpi_name


class Part(NamedTuple):
    """What one drawing shows.

    Attributes:
        suffix: of the drawing's file name: "-mpich"; "" where the campaign has one MPI.
        title_end: of its title: ", MPICH", or "".
        ranks: how many ranks all rows have.
    """

    suffix: str
    title_end: str
    ranks: int
    frame: pd.DataFrame


def parts(frame: pd.DataFrame) -> list[Part]:
    """One part per MPI and rank count, in reading order."""
    mpis = in_order(frame["mpi"], MPIS)
    return [
        Part(
            f"-{mpi}" if len(mpis) > 1 else "",
            f", {mpi_name(mpi)}" if len(mpis) > 1 else "",
            int(ranks),
            mine[mine["ranks"] == ranks],
        )
        for mpi in mpis
        for mine in [frame[frame["mpi"] == mpi]]
        for ranks in sorted(set(mine["ranks"]))
    ]


def some_arms(arms: Iterable[str], most: int) -> tuple[list[str], str]:
    """At most so many arms, the host and the tuned containers first; a note on the others."""
    every = sorted(set(arms), key=arm_key)
    if len(every) <= most:
        return every, ""
    preferred = sorted(
        every, key=lambda arm: (in_container(arm) and "tuned" not in arm, arm_key(arm))
    )
    left = len(every) - most
    others = "1 other arm is" if left == 1 else f"{left} other arms are"
    return sorted(preferred[:most], key=arm_key), f"{others} in the tables."


def heads(panels: Sequence[tuple[str, str]]) -> list[str]:
    """What each row of panels shows; a level that all share is left to the first container."""
    levels = [arm_levels(arm) for _, arm in panels]
    several = [len(set(each)) > 1 for each in zip(*levels, strict=True)]
    contained = [number for number, (name, *_) in enumerate(levels) if name != USERLAND]
    found: list[str] = []
    for number, (environment, profile, layout) in enumerate(levels):
        inside, first = number in contained, contained[:1] == [number]
        words = [panels[number][0]] if len({name for name, _ in panels}) > 1 else []
        words += [LAYOUTS[layout]] if inside and (several[2] or first) else []
        words += [environment_name(environment)] if several[0] or first or not inside else []
        words += [profile] if profile and (several[1] or first) else []
        found.append(", ".join(words))
    return found
