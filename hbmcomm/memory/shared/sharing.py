"""Methods by which ranks share memory: what provides a rank's own, and how it attaches others'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared.local_segment import LocalSegment, OrdinarySegment
from hbmcomm.memory.shared.pool import Pool
from hbmcomm.memory.shared.segment import Backing, Locator
from hbmcomm.memory.shared.segment_cache import Lengths, SegmentCache


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
        found = self._segments.attach(Locator(*locator))
        claim = found.address if self._has_claim else 0
        return PeerMemory(found.address, found.nbytes, claim, found)


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
