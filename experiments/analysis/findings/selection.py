"""Rows and levels of data frames, in the order that readers see. Pure."""

from collections.abc import Iterable
from typing import Any

import pandas as pd


def usual(frame: pd.DataFrame, *factors: str) -> pd.DataFrame:
    """Rows at the usual level of each factor (packed, local), or at its first where that is absent.

    Args:
        factors: "binding", "locality"; both when none is named.
    """
    for factor, level in (("binding", "packed"), ("locality", "local")):
        if factor not in frame or (factors and factor not in factors):
            continue
        present = levels(frame, factor)
        if present:
            frame = frame[frame[factor] == (level if level in present else present[0])]
    return frame


def rows(frame: pd.DataFrame) -> list[Any]:
    """The rows, each with an attribute per column."""
    return list(frame.itertuples(index=False))


def numbered(frame: pd.DataFrame) -> list[Any]:
    """The rows with the frame's index as the attribute Index, beside one per column."""
    return list(frame.itertuples())


def emulated(frame: pd.DataFrame) -> bool:
    """Whether any row was measured with emulated HBM."""
    return bool("emulated" in frame and frame["emulated"].astype(bool).any())


def in_order(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct values, known ones first and in the order given, then the others sorted."""
    known = list(order)
    present = set(values)
    return [v for v in known if v in present] + sorted(present - set(known))


def levels(frame: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, as text, in the order of their rows."""
    return [str(value) for value in dict.fromkeys(frame[column])]
