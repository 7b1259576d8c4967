"""Which part of a campaign gets a drawing of its own, and what heads its panels."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from experiments.model.arms import USERLAND, arm_key, in_container, named
from experiments.model.quantities import ranks_text
from plots.layout.labels import LAYOUTS, arm_name, by_mpi, environment_name


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

    @property
    def name(self) -> str:
        """What distinguishes its drawing from others of the topic: "-mpich-2-ranks"."""
        return f"{self.suffix}-{self.ranks}-ranks"

    @property
    def where(self) -> str:
        """The part in words: ", MPICH, 2 ranks"."""
        return f"{self.title_end}, {ranks_text(self.ranks)}"


def parts(frame: pd.DataFrame) -> list[Part]:
    """One part per MPI and rank count, in reading order; none of an empty frame."""
    if frame.empty:
        return []
    return [
        Part(suffix, title_end, int(ranks), mine[mine["ranks"] == ranks])
        for suffix, title_end, mine in by_mpi(frame)
        for ranks in sorted(set(mine["ranks"]))
    ]


def some_arms(arms: Iterable[str], most: int) -> tuple[list[str], list[str]]:
    """At most so many arms, the host and the tuned containers first; notes on the others."""
    every = sorted(set(arms), key=arm_key)
    if len(every) <= most:
        return every, []
    preferred = sorted(
        every, key=lambda arm: (in_container(arm) and "tuned" not in arm, arm_key(arm))
    )
    left = len(every) - most
    others = "1 other arm is" if left == 1 else f"{left} other arms are"
    return sorted(preferred[:most], key=arm_key), [f"{others} in the tables."]


def heads(panels: Sequence[tuple[str, str]]) -> list[str]:
    """What each row of panels shows; a level that all share is left to the first container.

    Args:
        panels: (transport, arm) of each row.
    """
    several_transports = len({transport for transport, _ in panels}) > 1
    every = [_levels(arm) for _, arm in panels]
    differs = [len(set(values)) > 1 for values in zip(*every, strict=True)]
    first_container = True
    row_heads = []
    for (transport, arm), levels in zip(panels, every, strict=True):
        words = [transport] if several_transports else []
        if arm == USERLAND:
            words.append(arm_name(arm))
        else:
            named = zip(levels, differs, strict=True)
            words += [level for level, own in named if level and (own or first_container)]
            first_container = False
        row_heads.append(", ".join(words))
    return row_heads


def _levels(arm: str) -> tuple[str, str, str]:
    """Layout, environment and profile of an arm in words; "" for none."""
    parsed = named(arm)
    return LAYOUTS.get(parsed.layout, ""), environment_name(parsed.environment), parsed.profile
