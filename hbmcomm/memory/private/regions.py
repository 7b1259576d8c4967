"""Ranges of addresses where shared memory is mapped, to find an array's memory by its address.

Arrays that NumPy allocates (NEP 49) refer to no `Block`; only their address identifies the memory.
"""

from __future__ import annotations

from typing import NamedTuple

from hbmcomm.memory.policy.kinds import Kind


class Region(NamedTuple):
    """A range of addresses, and its kind of memory."""

    start: int
    end: int
    kind: Kind


_regions: dict[int, Region] = {}


def add(start: int, nbytes: int, kind: Kind) -> None:
    """Add a range; it overlaps no other."""
    _regions[start] = Region(start, start + nbytes, kind)


def remove(start: int) -> None:
    """Remove the range that starts at an address."""
    _regions.pop(start, None)


def find(address: int) -> Region | None:
    """The range that an address is in."""
    for region in list(_regions.values()):
        if region.start <= address < region.end:
            return region
    return None
