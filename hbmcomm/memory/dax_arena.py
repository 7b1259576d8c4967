"""Creates an arena with its arrays on a device: the ranks take it together, and each has a slice.

Control blocks and staging are ordinary memory, near the CPUs that poll them. They are on the device
only where the ranks share nothing else, such as in containers that are isolated otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import dax_file, dax_mapping, owner_table, segment, segment_cache
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_by, nothing
from hbmcomm.memory.consensus import Allgather, run_on_all
from hbmcomm.memory.dax_file import DaxFile
from hbmcomm.memory.dax_mapping import DeviceMapping, DeviceMappings
from hbmcomm.memory.handshake import Begin
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.pool import STEP, Pool
from hbmcomm.memory.segment_cache import (
    Lengths,
    PeerMemory,
    Provider,
    SegmentCache,
    SharingMethod,
    ordinary_segments,
)


def create_arena(
    allgather: Allgather,
    rank: int,
    size: int,
    path: str,
    control: int,
    *,
    extra: Callable[[], Any] = nothing,
    begin: Begin | None = None,
    segments: SegmentCache = segment_cache.OF_PROCESS,
    mappings: DeviceMappings = dax_mapping.OF_PROCESS,
) -> tuple[Arena, list[Any]]:
    """The arena of all ranks that take part, on a device-dax file; collective.

    The first communicator of a job on a device takes all of it, one slice for each of its ranks.
    Others of the same ranks, or of some of them, share that.

    Args:
        allgather, rank, size, control, extra, begin, segments: As for
            `arena_creation.create_arena`.
        path: The device's file; containers may name it differently.
        mappings: The devices that this process maps.

    Raises:
        KindUnavailable: On every rank: one of them cannot use the device, or another job has it.
        OutOfMemory: On every rank: it is too small for so many.
        ArenaUnavailable: On every rank: they do not all see the same device.
    """

    def inspect() -> tuple[DaxFile, bytes]:
        device = dax_file.inspect(path)
        known = mappings.of(device)
        return device, known.token if known else b""

    seen = run_on_all(allgather, inspect)
    device, tokens = seen[rank][0], [token for _, token in seen]
    mapping = mappings.of(device)
    if mapping is None or len(set(tokens)) > 1:
        _check_free(path, tokens)
        _check_same([file for file, _ in seen])
        _check_size(device, size, control)
        mapping = _take(allgather, rank, size, device)
        mappings.add(mapping)
    slices = SliceProvider(mapping)

    def provide(_kind: Kind, _lengths: Lengths, _most: int | None, _fresh: bool) -> Provider:
        return slices

    methods = [
        SharingMethod(backing, ordinary_segments(segments, backing), provide)
        for backing in segment.BACKINGS
    ]
    methods.append(SharingMethod("device", provide, provide))
    kind = dax_file.kind_of(device)
    return create_by(
        methods, allgather, rank, size, lambda: kind, control, extra=extra, begin=begin
    )


class SliceProvider:
    """Provides a rank's slice of a device."""

    unlinked = False

    def __init__(self, own: DeviceMapping) -> None:
        self.pool: Pool = own
        self.locator: Any = own.line
        self._own = own

    def attach(self, locator: Any) -> PeerMemory:
        """The slice of the rank with that line."""
        own = self._own
        if not isinstance(locator, int) or not 0 <= locator < own.lines:
            raise FileNotFoundError(f"{own.device.path} has no slice {locator!r}")
        claim = owner_table.word_address(own.table, locator)
        return PeerMemory(own.start_of(locator), own.nbytes, claim, own.mapping)

    def unlink(self) -> None:
        """Does nothing: any process that may open the device can attach a slice."""


def _check_free(path: str, tokens: Sequence[bytes]) -> None:
    holders = [number for number, token in enumerate(tokens) if token]
    if holders:
        raise KindUnavailable(
            f"device={path} is in use by another communicator of this job, or by an array that one "
            f"left behind, on rank {holders[0]} but not on every rank; make one communicator for "
            "all ranks and derive the others from it (Split, Create), or free it and its arrays"
        )


def _check_same(seen: Sequence[DaxFile]) -> None:
    first = seen[0]
    for number, device in enumerate(seen):
        if (device.nbytes, device.alignment) != (first.nbytes, first.alignment):
            raise ArenaUnavailable(
                f"rank {number} has another device at {device.path} ({device.nbytes:,} bytes) than "
                f"rank 0 ({first.nbytes:,}); start the ranks on one machine, with one device"
            )


def _check_size(device: DaxFile, ranks: int, control: int) -> None:
    slice_bytes = dax_mapping.slice_bytes(device, ranks)
    if ranks > owner_table.LINES or slice_bytes < control + STEP:
        raise OutOfMemory(
            f"device={device.path} has {device.nbytes:,} bytes: too few for {ranks} ranks, each of "
            f"which needs {control:,} and room for arrays; take fewer ranks or a larger device"
        )


def _take(allgather: Allgather, rank: int, size: int, device: DaxFile) -> DeviceMapping:
    """Take a device for the ranks of this communicator: one of them first, then the others."""
    mapped: list[DeviceMapping] = []

    def map_it() -> DeviceMapping:
        mapped.append(dax_mapping.map_device(device, rank, size))
        return mapped[0]

    try:
        token = run_on_all(allgather, lambda: map_it().claim_first() if rank == 0 else b"")[0]
        run_on_all(allgather, lambda: map_it().claim_with(token) if rank else None)
    except HbmcommError:
        for mapping in mapped:
            mapping.release()
        raise
    return mapped[0]
