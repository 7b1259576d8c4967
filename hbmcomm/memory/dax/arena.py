"""An arena with its arrays on a device: the ranks take it together, and each has a slice.

Control blocks and staging are ordinary memory, near the CPUs that poll them. They are on the device
only where it is all that the ranks share, such as in containers that are isolated but for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory.dax import claims, devices, holding
from hbmcomm.memory.dax.devices import Device
from hbmcomm.memory.dax.holding import Holding, Holdings
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared import registry, segment
from hbmcomm.memory.shared.agree import Allgather, together
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.attempt import Begin
from hbmcomm.memory.shared.ground import Ground
from hbmcomm.memory.shared.heap import STEP
from hbmcomm.memory.shared.make import make_by, nothing
from hbmcomm.memory.shared.registry import Lengths, Registry
from hbmcomm.memory.shared.route import Choice, Found, Route, Source, ordinary_segments


def make(
    allgather: Allgather,
    rank: int,
    size: int,
    path: str,
    control: int,
    *,
    extra: Callable[[], Any] = nothing,
    begin: Begin | None = None,
    own: Registry = registry.HERE,
    held: Holdings = holding.HERE,
) -> tuple[Arena, list[Any]]:
    """The arena of all ranks that take part, on a device-dax file; collective.

    The first communicator of a job on a device takes all of it, one slice for each of its ranks.
    Others of the same ranks, or of some of them, share that.

    Args:
        allgather, rank, size, control, extra, begin, own: As for `shared.make.make`.
        path: The device's file; containers may name it differently.
        held: The devices that this process holds.

    Raises:
        KindUnavailable: On every rank: the device cannot be had by one of them, or others have it.
        OutOfMemory: On every rank: it is too small for so many.
        ArenaUnavailable: On every rank: they do not all see the same device.
    """

    def look() -> tuple[Device, bytes]:
        device = devices.look(path)
        known = held.of(device)
        return device, known.token if known else b""

    seen = together(allgather, look)
    device, tokens = seen[rank][0], [token for _, token in seen]
    found = held.of(device)
    if found is None or len(set(tokens)) > 1:
        _check_free(path, tokens)
        _check_alike([each for each, _ in seen])
        _check_size(device, size, control)
        found = _take(allgather, rank, size, device)
        held.keep(found)
    slices = _slices(found)
    routes = [Route(way, ordinary_segments(own, way), slices) for way in segment.WAYS]
    routes.append(Route("device", slices, slices))
    kind = devices.kind_of(device)
    return make_by(routes, allgather, rank, size, lambda: kind, control, extra=extra, begin=begin)


class Slices:
    """The slices of a device that the ranks of a job hold."""

    hidden = False

    def __init__(self, held: Holding) -> None:
        self.ground: Ground = held
        self.notice: Any = held.line
        self._held = held

    def find(self, notice: Any) -> Found:
        """The slice of the rank with that line."""
        held = self._held
        if not isinstance(notice, int) or not 0 <= notice < held.lines:
            raise FileNotFoundError(f"{held.device.path} has no slice {notice!r}")
        claim = claims.place(held.table, notice)
        return Found(held.start_of(notice), held.nbytes, claim, held.mapping)

    def hide(self) -> None:
        """Nothing: any process that may open the device can find it."""


def _slices(held: Holding) -> Choice:
    def choose(_kind: Kind, _lengths: Lengths, _most: int | None, _fresh: bool) -> Source:
        return Slices(held)

    return choose


def _check_free(path: str, tokens: Sequence[bytes]) -> None:
    holders = [number for number, token in enumerate(tokens) if token]
    if holders:
        raise KindUnavailable(
            f"device={path} is in use by another communicator of this job, or by an array that is "
            f"left of one, on rank {holders[0]} but not on every rank; make one communicator for "
            "all ranks and derive the others from it (Split, Create), or free it and its arrays"
        )


def _check_alike(seen: Sequence[Device]) -> None:
    first = seen[0]
    for number, device in enumerate(seen):
        if (device.nbytes, device.alignment) != (first.nbytes, first.alignment):
            raise ArenaUnavailable(
                f"rank {number} has another device at {device.path} ({device.nbytes:,} bytes) than "
                f"rank 0 ({first.nbytes:,}); start the ranks on one machine, with one device"
            )


def _check_size(device: Device, ranks: int, control: int) -> None:
    found = holding.slice_bytes(device, ranks)
    if ranks > claims.LINES or found < control + STEP:
        raise OutOfMemory(
            f"device={device.path} has {device.nbytes:,} bytes: too few for {ranks} ranks, each of "
            f"which needs {control:,} and room for arrays; take fewer ranks or a larger device"
        )


def _take(allgather: Allgather, rank: int, size: int, device: Device) -> Holding:
    """Take a device for the ranks of this communicator: one of them first, then the others."""
    made: list[Holding] = []

    def begun() -> Holding:
        made.append(holding.begin(device, rank, size))
        return made[0]

    try:
        token = together(allgather, lambda: begun().claim_first() if rank == 0 else b"")[0]
        together(allgather, lambda: begun().claim_with(token) if rank else None)
    except HbmcommError:
        for each in made:
            each.release()
        raise
    return made[0]
