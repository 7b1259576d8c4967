"""One expectation of an emulated machine, and what was found. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One expectation and what was found; why, where the expectation is not the obvious one."""

    what: str
    expected: str
    found: str
    ok: bool
    why: str = ""


def same(what: str, expected: str, found: str) -> Row:
    """A row that is right if both texts are equal."""
    return Row(what, expected, found, expected == found)


def by_node(values: Mapping[int, object]) -> str:
    """ "0: 2048; 1: 512"."""
    return "; ".join(f"{node}: {value}" for node, value in sorted(values.items()))
