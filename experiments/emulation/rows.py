"""One thing that must be so on an emulated machine, and what was found instead. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One thing that must be so.

    Attributes:
        why: where the machine rightly differs from what one would think, the reason.
    """

    what: str
    expected: str
    found: str
    ok: bool
    why: str = ""


def same(what: str, expected: str, found: str) -> Row:
    """What is right where both are the same words."""
    return Row(what, expected, found, expected == found)


def by_node(values: Mapping[int, object]) -> str:
    """ "0: 2048; 1: 512"."""
    return "; ".join(f"{node}: {value}" for node, value in sorted(values.items()))
