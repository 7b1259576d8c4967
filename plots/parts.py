"""Which part of the findings gets a drawing of its own, where one drawing cannot hold them all."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from plots.findings import in_order
from plots.labels import MPIS, arm_place, in_container, mpi_name


class Part(NamedTuple):
    """What one drawing shows.

    Attributes:
        suffix: of the drawing's file name: "-mpich"; "" where the campaign has one MPI.
        said: of its title: ", MPICH", or "".
        ranks: how many ranks all rows have.
    """

    suffix: str
    said: str
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
    every = sorted(set(arms), key=arm_place)
    if len(every) <= most:
        return every, ""
    preferred = sorted(
        every, key=lambda arm: (in_container(arm) and "tuned" not in arm, arm_place(arm))
    )
    left = len(every) - most
    told = "1 other arm stands" if left == 1 else f"{left} other arms stand"
    return sorted(preferred[:most], key=arm_place), f"{told} in the tables."
