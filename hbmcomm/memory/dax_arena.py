"""An arena on a device: the ranks take it together, and every communicator has its part of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import holding
from hbmcomm.memory.arena import Allgather, Arena
from hbmcomm.memory.dax import claims as claim
from hbmcomm.memory.dax import devices as dax
from hbmcomm.memory.dax.devices import Device
from hbmcomm.memory.heap import Stretch
from hbmcomm.memory.holding import STEP, Holding

T = TypeVar("T")


def make(allgather: Allgather, rank: int, path: str, reserved: int) -> Arena:
    """The arena of all ranks that take part, on a device-dax file; collective.

    The first communicator of a job on a device takes all of it, one slice for each of its ranks.
    Others of the same ranks, or of some of them, share that.

    Args:
        allgather: How the ranks exchange values.
        rank: This rank's number among them.
        path: The device's file; containers may name it differently.
        reserved: Bytes at the beginning of each rank's part that are not for arrays; they are zero.

    Raises:
        KindUnavailable: On every rank: the device cannot be had by one of them, or others have it.
        OutOfMemory: On every rank: it is too small for so many.
        ArenaUnavailable: On every rank: they do not all see the same device.
    """
    devices = _together(allgather, lambda: dax.look(path))
    held = holding.of(devices[rank])
    tokens = allgather(held.token if held else b"")
    if held is None or len(set(tokens)) > 1:
        _check_free(path, tokens)
        _check_alike(devices)
        _check_size(devices[rank], len(devices), reserved)
        held = _take(allgather, rank, devices[rank])
    return _share(allgather, rank, held, reserved)


def _check_free(path: str, tokens: Sequence[bytes]) -> None:
    holders = [number for number, token in enumerate(tokens) if token]
    if holders:
        raise KindUnavailable(
            f"device={path} is in use by another communicator of this job, or by an array that is "
            f"left of one, on rank {holders[0]} but not on every rank; make one communicator for "
            "all ranks and derive the others from it (Split, Create), or free it and its arrays"
        )


def _check_alike(devices: Sequence[Device]) -> None:
    first = devices[0]
    for number, device in enumerate(devices):
        if (device.nbytes, device.alignment) != (first.nbytes, first.alignment):
            raise ArenaUnavailable(
                f"rank {number} has another device at {device.path} ({device.nbytes:,} bytes) than "
                f"rank 0 ({first.nbytes:,}); start the ranks on one machine, with one device"
            )


def _check_size(device: Device, ranks: int, reserved: int) -> None:
    found = holding.slice_bytes(device, ranks)
    if ranks > claim.LINES or found < reserved + STEP:
        raise OutOfMemory(
            f"device={device.path} has {device.nbytes:,} bytes: too few for {ranks} ranks, each of "
            f"which needs {reserved:,} and room for arrays; take fewer ranks or a larger device"
        )


def _take(allgather: Allgather, rank: int, device: Device) -> Holding:
    """Take a device for the ranks of this communicator: one of them first, then the others."""
    ranks = len(allgather(None))
    made: list[Holding] = []

    def begun() -> Holding:
        made.append(holding.begin(device, rank, ranks))
        return made[0]

    try:
        token = _together(allgather, lambda: begun().claim_first() if rank == 0 else b"")[0]
        _together(allgather, lambda: begun().claim_with(token) if rank else None)
    except HbmcommError:
        for each in made:
            each.release()
        raise
    holding.keep(made[0])
    return made[0]


def _share(allgather: Allgather, rank: int, held: Holding, reserved: int) -> Arena:
    """A communicator's part of what its ranks hold."""
    taken: list[Stretch] = []

    def control() -> tuple[int, int]:
        taken.append(held.control(reserved))
        return held.line, taken[0].start

    try:
        told = _together(allgather, control)  # past it, every control area is zero
    except HbmcommError:
        for each in taken:
            held.heap.give(each)
        raise
    areas = [held.start_of(line) + start for line, start in told]
    arena = Arena(
        dax.kind_of(held.device),
        held,
        areas,
        rank,
        taken[0].end,
        claims=[claim.place(held.table, line) for line, _ in told],
        boot=claim.boot(),
    )
    weakref.finalize(arena, held.leave, areas, rank, taken[0]).atexit = False
    return arena


def _together(allgather: Allgather, act: Callable[[], T]) -> list[T]:
    """What `act`, which talks to no one, returns on each rank.

    Raises:
        HbmcommError: On every rank alike, of the first rank where it failed.
    """
    problem: HbmcommError | None = None
    found: T | None = None
    try:
        found = act()
    except HbmcommError as error:
        problem = error
    except OSError as error:
        problem = ArenaUnavailable(str(error))
    told = allgather((found, problem))
    for number, (_, each) in enumerate(told):
        if each is not None:
            raise type(each)(f"rank {number}: {each}")
    return [each for each, _ in told]
