"""Which algorithm hosts use: the one that is named, or by the length of the message."""

from __future__ import annotations

from functools import partial

from hbmcomm.collectives.hierarchical.between import chain, doubling, rabenseifner, ring, tree
from hbmcomm.collectives.hierarchical.between.steps import Algorithm
from hbmcomm.quantities import KIB

AUTO = "auto"

ALLREDUCE: dict[str, Algorithm] = {
    "ring": ring.allreduce,
    "recursive-doubling": doubling.allreduce,
    "rabenseifner": rabenseifner.allreduce,
    "tree": tree.allreduce,
}
"""The algorithms of Allreduce by name."""

NAMES = (AUTO, *ALLREDUCE)

SHORT = 16 * KIB
"""Bytes up to which another round takes longer than the bytes that it saves."""
_LONG = 256 * KIB
"""Bytes of each host's part of a message from which on the rounds of a ring are short beside it.
Each host then hears from one other alone, and has its next part while it sends the last."""


def of_allreduce(name: str, size: int, nbytes: int) -> Algorithm:
    """The algorithm for an Allreduce of so many bytes on `size` hosts."""
    if name != AUTO:
        return ALLREDUCE[name]
    if nbytes <= SHORT:
        return doubling.allreduce
    if size & (size - 1) or nbytes // size >= _LONG:
        return ring.allreduce
    return rabenseifner.allreduce


def of_bcast(name: str, size: int, root: int, slices: int) -> Algorithm:
    """The algorithm for a Bcast from host `root` to `size` hosts: a tree, or a chain of slices."""
    return partial((tree if _takes_tree(name, size, slices) else chain).bcast, root=root)


def of_reduce(name: str, size: int, root: int, slices: int) -> Algorithm:
    """The algorithm for a Reduce from `size` hosts to host `root`."""
    return partial((tree if _takes_tree(name, size, slices) else chain).reduce, root=root)


def _takes_tree(name: str, size: int, slices: int) -> bool:
    """A named algorithm without a form for one root leaves the choice to the times of a slice.

    In a tree the root's link carries each slice once a round; along a chain each slice follows the
    one before.
    """
    rounds = (size - 1).bit_length()
    return name == "tree" or (name != "ring" and size - 2 + slices > rounds * slices)
