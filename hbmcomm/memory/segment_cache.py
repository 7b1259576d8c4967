"""The shared memory of this process: segments of its own, and those of others that it maps.

Each segment is created, and mapped, once, however many communicators use it. It is freed with the
last of its users: the cache holds weak references only.
"""

from __future__ import annotations

import itertools
import os
import resource
import threading
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from hbmcomm.memory import kernel, shm_folder
from hbmcomm.memory import segment as segments
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.local_segment import LocalSegment, OrdinarySegment, bind
from hbmcomm.memory.pool import STEP, Pool, lib
from hbmcomm.memory.segment import Backing, Locator, Segment

T = TypeVar("T", bound=LocalSegment)

ADDRESS_SPACE = 2**46
"""Bytes of address space for the arrays of all ranks: x86-64 gives a process 2**47."""
ORDINARY_BYTES = 2**34
"""Bytes reserved for control blocks and staging; memory is populated as it is needed."""
LEAST_ARRAYS, LEAST_ORDINARY = 32 * 2**20, 8 * 2**20
"""Segments are no shorter than this."""


class Lengths(NamedTuple):
    """Bytes to reserve for a process's ordinary memory and for its arrays."""

    ordinary: int
    arrays: int

    def at_most(self, arrays: int | None) -> Lengths:
        """Shorter ones, of which the arrays have at most so many bytes."""
        if arrays is None or arrays >= self.arrays:
            return self
        arrays = max(arrays, LEAST_ARRAYS) // STEP * STEP
        return Lengths(min(self.ordinary, max(arrays // 4, LEAST_ORDINARY)) // STEP * STEP, arrays)


def lengths(ranks: int) -> Lengths:
    """The bytes that each of so many ranks should reserve.

    As many as the machine has memory, within each rank's share of the address space. Under a limit
    of address space (ulimit -v) the segments of all ranks take half of what is left.
    """
    memory, cpus = machine()
    most = ADDRESS_SPACE // max(ranks, cpus)
    sizes = Lengths(min(memory, ORDINARY_BYTES), min(memory, most))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        share = max(limit - pages * kernel.PAGE, 0) // 2 // ranks
        sizes = sizes.at_most(share * 3 // 4)
    return Lengths(*(nbytes // STEP * STEP for nbytes in sizes))


@cache
def machine() -> tuple[int, int]:
    """Bytes of memory and number of CPUs; read once, because each takes a read of a file."""
    return os.sysconf("SC_PHYS_PAGES") * kernel.PAGE, os.cpu_count() or 1


class SegmentCache:
    """A process's own segments by their purpose, and its mappings of others' by identity."""

    def __init__(self) -> None:
        self._own: weakref.WeakValueDictionary[tuple[object, ...], LocalSegment]
        self._own = weakref.WeakValueDictionary()
        self._mapped: weakref.WeakValueDictionary[tuple[int, int, str], Segment]
        self._mapped = weakref.WeakValueDictionary()
        self._numbers = itertools.count()
        # Python may collect an object that creates segments at any step, hence RLock.
        self._creating = threading.RLock()

    def ordinary(
        self, backing: Backing, nbytes: int, most: int | None, fresh: bool
    ) -> OrdinarySegment:
        """The ordinary segment of this process; arguments and errors as for `arrays`."""
        return self._get(("ordinary", backing), backing, nbytes, most, fresh, OrdinarySegment)

    def arrays(
        self, kind: Kind, backing: Backing, nbytes: int, most: int | None, fresh: bool
    ) -> LocalSegment:
        """The segment of this process for arrays of a kind.

        Args:
            kind: Kinds with the same nodes and policy share a segment.
            backing: What holds its memory.
            nbytes: The length of a new one.
            most: Only a segment of at most so many bytes will do; None: any length.
            fresh: Only a segment that further processes can attach will do.

        Raises:
            OSError: This backing does not work here, or not at that length.
            KindUnavailable: The kernel refuses to bind memory to the nodes.
        """

        def own(segment: Segment) -> LocalSegment:
            bind(kind, segment)
            return LocalSegment(kind, segment)

        purpose = ("arrays", kind.policy, kind.nodes, backing)
        return self._get(purpose, backing, nbytes, most, fresh, own)

    def attach(self, locator: Locator) -> Segment:
        """A segment of any process, mapped here.

        Raises:
            OSError: It cannot be found or mapped.
        """
        for own in list(self._own.values()):
            if own.segment.locator.identity == locator.identity:
                return own.segment
        segment = self._mapped.get(locator.identity)
        if segment is None:
            segment = segments.attach(locator)
            self._mapped[locator.identity] = segment
        if segment.nbytes != locator.nbytes:
            raise FileNotFoundError(f"{locator.path} has {segment.nbytes:,} bytes")
        return segment

    def _get(
        self,
        purpose: tuple[object, ...],
        backing: Backing,
        nbytes: int,
        most: int | None,
        fresh: bool,
        own: Callable[[Segment], T],
    ) -> T:
        """The longest segment for a purpose, or a new one that `own` takes over."""
        segments.check_wanted(backing)
        key = (lib.hbm_forks(), shm_folder.named(), *purpose)  # a child of a fork creates its own
        with self._creating:
            here = [local for name, local in list(self._own.items()) if name[:-1] == key]
            here = [local for local in here if most is None or local.nbytes <= most]
            here = [local for local in here if not (fresh and local.unlinked)]
            if here:
                longest: T = max(here, key=lambda local: local.nbytes)  # type: ignore[assignment]
                return longest
            segment = segments.create(backing, nbytes)
            try:
                created = own(segment)
            except BaseException:
                segment.unlink()
                raise
            self._own[(*key, next(self._numbers))] = created
            return created


OF_PROCESS = SegmentCache()
"""The cache of this process."""


class PeerMemory(NamedTuple):
    """A rank's memory, mapped here."""

    address: int
    nbytes: int
    claim: int
    """Address of the claim that the rank holds while it lives; 0: none in this memory."""
    mapped: object
    """The object that keeps it mapped; it must not refer to a pool."""


class Provider(Protocol):
    """One rank's own memory for one purpose, and how it attaches the same memory of others."""

    pool: Pool
    locator: Any
    """What other ranks need to attach it."""
    unlinked: bool
    """Whether only ranks that have it mapped already can attach it."""

    def attach(self, locator: Any) -> PeerMemory:
        """The memory of the rank that sent a locator; OSError where it cannot be attached."""

    def unlink(self) -> None:
        """Called when no rank attaches this memory any more."""


ProviderFactory = Callable[[Kind, Lengths, int | None, bool], Provider]
"""Makes a provider from the kind of the arrays, the lengths to reserve, the most bytes that
segments of arrays may have (None: any), and whether every rank must be able to attach it."""


class SharingMethod(NamedTuple):
    """Provides the memory for control blocks and staging, and the memory for arrays."""

    name: str
    ordinary: ProviderFactory
    arrays: ProviderFactory


class SegmentProvider:
    """Provides a segment, of ordinary memory or for the arrays of a kind."""

    def __init__(self, segments: SegmentCache, own: LocalSegment) -> None:
        self.pool: Pool = own
        self.locator: Any = own.segment.locator
        self.unlinked = own.unlinked
        self.unlink = own.unlink
        self._segments = segments
        self._has_claim = isinstance(own, OrdinarySegment)

    def attach(self, locator: Any) -> PeerMemory:
        """The segment of a locator, mapped here."""
        segment = self._segments.attach(Locator(*locator))
        claim = segment.address if self._has_claim else 0
        return PeerMemory(segment.address, segment.nbytes, claim, segment)


def ordinary_segments(segments: SegmentCache, backing: Backing) -> ProviderFactory:
    """Provides ordinary memory in segments."""

    def provide(_kind: Kind, lengths: Lengths, most: int | None, fresh: bool) -> Provider:
        limit = None if most is None else lengths.ordinary
        return SegmentProvider(segments, segments.ordinary(backing, lengths.ordinary, limit, fresh))

    return provide


def by_segments(segments: SegmentCache, backing: Backing) -> SharingMethod:
    """Both ordinary memory and arrays are in segments."""

    def arrays(kind: Kind, lengths: Lengths, most: int | None, fresh: bool) -> Provider:
        own = segments.arrays(kind, backing, lengths.arrays, most, fresh)
        return SegmentProvider(segments, own)

    return SharingMethod(backing, ordinary_segments(segments, backing), arrays)
