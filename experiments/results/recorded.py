"""Whether launches ran on an emulated machine. Pure.

Such a machine shows nodes, distances and bandwidths as its description has them, and its kernel
places pages by them: that is real. Times there are QEMU's, not the machine's.
"""

from collections.abc import Iterable
from typing import Any

from experiments.model.environment import NOT_EMULATED

COLUMN = "emulated_machine"
"""Column of a table of cells: the machine's name and how it was run, or NOT_EMULATED."""


def machines(column: Iterable[Any]) -> list[str]:
    """The emulated machines among the values of COLUMN; an empty place is none."""
    return sorted({name for name in column if isinstance(name, str)} - {NOT_EMULATED})


def meaning(column: Iterable[Any]) -> str:
    """What readers of any number from machines() must know; "" where there is none."""
    every = ", ".join(machines(column))
    return (
        f"Emulated machine {every}: where ranks and pages are is real, times mean nothing."
        if every
        else ""
    )
