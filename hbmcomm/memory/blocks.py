"""Blocks of memory of a kind, freed with their last user.

A block comes from memkind's heap where possible. Where libmemkind is missing, or its block has
another policy than the kind (memkind detects less HBM, and its heaps keep the CPUs of their first
use), the block is a mapping of its own, bound by mbind. Both guarantee the kind's nodes and policy,
and that every page of a strict kind is populated.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from hbmcomm.errors import KindUnavailable, OutOfMemory
from hbmcomm.memory import capacity, kernel, memkind
from hbmcomm.memory.kinds import Kind, usable_nodes
from hbmcomm.memory.sysfs import format_list

ALIGNMENT = 64
HUGE_PAGES_FROM = 4 * 2**20
"""Blocks of this size and more ask for huge pages, like NumPy's own allocator."""

Source = Literal["memkind", "mmap", "arena"]


class Block:
    """`nbytes` of memory of a kind at `address`; collecting the object frees it."""

    def __init__(
        self,
        kind: Kind,
        address: int,
        nbytes: int,
        source: Source,
        release: Callable[..., None],
        *arguments: Any,
    ) -> None:
        self.kind = kind
        self.address = address
        self.nbytes = nbytes
        self.source = source
        # Not at exit: arrays may outlive the finalizers then, and the process ends anyway.
        weakref.finalize(self, release, *arguments).atexit = False

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The block as bytes, for numpy.asarray; the array then refers to the block."""
        data = (self.address, False)
        return {"version": 3, "shape": (self.nbytes,), "typestr": "|u1", "data": data}


def allocate(kind: Kind, nbytes: int, pinned: bool) -> Block:
    """A block of at least one byte; a mapping is zero, memkind's memory is arbitrary.

    Args:
        pinned: Whether the caller chose the nodes, which memkind does not support.

    Raises:
        OutOfMemory: A strict kind has less free on its nodes, or the system refuses.
        KindUnavailable: This process may not bind memory.
    """
    nbytes = max(nbytes, 1)
    if kind.strict and nbytes > capacity.SMALLEST_STEP:  # else checked before it has memory
        capacity.require(kind, nbytes)
    block = (None if pinned else _from_memkind(kind, nbytes)) or _from_kernel(kind, nbytes)
    if nbytes >= HUGE_PAGES_FROM and not kind.spread:
        kernel.advise_huge_pages(block.address, nbytes)
    if kind.strict:
        try:
            capacity.populate(kind, block.address, nbytes)
        except OutOfMemory:  # else memkind would keep the populated pages for a while
            kernel.discard(block.address, nbytes, shared=False)
            raise
    return block


def check_memkind(kind: Kind) -> None:
    """Raises MemkindError unless memkind's heap has the nodes and policy of this kind."""
    address = memkind.allocate(kind.name, kernel.PAGE, ALIGNMENT)
    try:
        if not _has_policy(kind, address):
            raise memkind.MemkindError(_disagreement(kind, address))
    finally:
        memkind.free(kind.name, address)


def _from_memkind(kind: Kind, nbytes: int) -> Block | None:
    try:
        address = memkind.allocate(kind.name, nbytes, ALIGNMENT)
    except memkind.MemkindError:
        return None
    if _has_policy(kind, address):
        return Block(kind, address, nbytes, "memkind", memkind.free, kind.name, address)
    memkind.free(kind.name, address)
    return None


def reserve_range(kind: Kind) -> Block:
    """Addresses for as many bytes as the machine has memory; memory comes as pages are touched.

    Raises:
        OutOfMemory: The system refuses so many addresses.
        KindUnavailable: This process may not bind memory.
    """
    return _from_kernel(kind, os.sysconf("SC_PHYS_PAGES") * kernel.PAGE, reserve=False)


def _from_kernel(kind: Kind, nbytes: int, reserve: bool = True) -> Block:
    length = -(-nbytes // kernel.PAGE) * kernel.PAGE
    try:
        address = kernel.map_private(length, reserve)
    except OSError as error:
        raise OutOfMemory(
            f"{kind.name}: {nbytes:,} bytes refused by the system ({error}); ask for less"
        ) from None
    block = Block(kind, address, length, "mmap", kernel.unmap, address, length)
    try:
        if kind.policy != "default":
            kernel.bind(block.address, length, kind.policy, kind.nodes)
    except OSError as error:
        if not _needs_no_binding(kind):
            raise KindUnavailable(why_unbound(kind, error)) from None
    return block


def _has_policy(kind: Kind, address: int) -> bool:
    """Whether a block of memkind has the nodes and policy of the kind."""
    try:
        policy, nodes = kernel.policy_of(address)
    except OSError:
        return False
    if kind.policy == "default":
        # memkind binds regular memory to the nodes with CPUs, which are all nodes here
        return policy == "default" or nodes == kind.nodes
    return (policy, nodes) == (kind.policy, kind.nodes)


def _needs_no_binding(kind: Kind) -> bool:
    """Whether unbound memory is on the kind's nodes too, because there are no others."""
    usable = set(usable_nodes())
    return usable <= set(kind.nodes) and (not kind.spread or len(usable) == 1)


def why_unbound(kind: Kind, error: OSError) -> str:
    """A message for mbind's refusal: what it means and what to do."""
    asked = f"{kind.name}: binding memory to node {format_list(kind.nodes)} was refused ({error})"
    if error.errno == errno.EPERM:
        return f"{asked}; {kernel.POLICY_CALLS_IN_A_CONTAINER}"
    if kind.policy == "weighted_interleave" and error.errno == errno.EINVAL:
        return f"{asked}; weighted interleaving needs Linux 6.9 or newer: take interleave, or hbw"
    if kind.policy == "preferred" and len(kind.nodes) > 1:
        return f"{asked}; this kernel can prefer one node only: pin the thread to CPUs of one node"
    return asked


def _disagreement(kind: Kind, address: int) -> str:
    try:
        policy, nodes = kernel.policy_of(address)
    except OSError as error:
        return f"{kind.name}: the kernel does not give the policy of memkind's memory ({error})"
    return (
        f"{kind.name} is {kind.policy} on node {format_list(kind.nodes)} here, but memkind's is "
        f"{policy} on node {format_list(nodes)}; pin the thread first, or set MEMKIND_HBW_NODES"
    )


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
