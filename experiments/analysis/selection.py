"""Rows, levels and values of data frames, in the order that readers see. Pure."""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from experiments.model.arms import arm_key, in_container


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


def at(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Rows with these levels of factors; an empty frame may have no columns."""
    for factor, level in wanted.items():
        frame = frame if frame.empty else frame[frame[factor] == level]
    return frame


def container_arms(cells: pd.DataFrame) -> list[str]:
    """The arms that ran in a container, in the order in which figures show them."""
    return sorted(filter(in_container, set(cells["arm"])), key=arm_key)


def of_first_arm(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the host, or of the first arm there is; an empty frame may have no columns."""
    return frame if frame.empty else frame[frame["arm"] == min(frame["arm"], key=arm_key)]


def of_real_memory(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of real memory where there are any: an emulated kind is the same memory again."""
    real = frame if frame.empty else frame[~frame["emulated"].astype(bool)]
    return frame if real.empty else real


def rows(frame: pd.DataFrame) -> list[Any]:
    """The rows, each with an attribute per column and the frame's index as Index."""
    return list(frame.itertuples())


def json_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON holds them."""
    return [
        {str(key): json_value(value) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def json_value(value: Any) -> Any:
    """A NumPy value as Python's; None for NaN and infinities, which JSON does not have."""
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def emulated(frame: pd.DataFrame) -> bool:
    """Whether any row was measured with emulated HBM."""
    return bool("emulated" in frame and frame["emulated"].astype(bool).any())


def in_order(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """The distinct values, known ones first and in the order given, then the others sorted."""
    known = list(dict.fromkeys(order))
    present = set(values)
    return [v for v in known if v in present] + sorted(present - set(known))


def places(column: "pd.Series[Any]", order: Iterable[str]) -> "pd.Series[Any]":
    """For each value its place in in_order(); rows are sorted by it."""
    return column.map({value: place for place, value in enumerate(in_order(column, order))})


def levels(frame: pd.DataFrame, column: str) -> list[str]:
    """The distinct values of a column, as text, in the order of their rows."""
    return [str(value) for value in dict.fromkeys(frame[column])]
