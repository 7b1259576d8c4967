"""Numbers and their units, as variables of the environment give them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

KIB, MIB, GIB = 2**10, 2**20, 2**30
BYTES = {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": 2**40}


def parse_quantity(text: str, units: Mapping[str, int]) -> int | None:
    """The number that "64KiB", "64 kib" or "64k" means; None where the unit is unknown.

    Args:
        units: by its name, what a unit multiplies a number by.
    """
    match = re.fullmatch(r"(\d{1,19})\s*([a-z]*)", text.strip().lower())
    spelled = {spelling: factor for name, factor in units.items() for spelling in _spellings(name)}
    return int(match[1]) * spelled[match[2]] if match and match[2] in spelled else None


def _spellings(unit: str) -> tuple[str, ...]:
    """In lower case: "kib", "kb" and "k" are one unit."""
    name = unit.lower()
    return (name, name[0], f"{name[0]}b") if name.endswith("ib") else (name,)
