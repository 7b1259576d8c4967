"""Ranges of addresses that shared memory is mapped at, to tell where an array is by its address.

Arrays that NumPy made by itself (NEP 49) refer to no block of ours; their address is all there is.
"""

from __future__ import annotations

from typing import NamedTuple

from hbmcomm.memory.policy.kinds import Kind


class Region(NamedTuple):
    """A range of addresses, and what memory is there."""

    start: int
    end: int
    kind: Kind


_regions: dict[int, Region] = {}


def add(start: int, nbytes: int, kind: Kind) -> None:
    """Note a range; it overlaps no other."""
    _regions[start] = Region(start, start + nbytes, kind)


def remove(start: int) -> None:
    """Forget the range that starts there."""
    _regions.pop(start, None)


def find(address: int) -> Region | None:
    """The range that an address is in."""
    for region in list(_regions.values()):
        if region.start <= address < region.end:
            return region
    return None
