"""A device as the ranks of one job hold it: mapped whole, cut into one slice for each rank.

    table of claims | slice of rank 0 | slice of rank 1 | ...

A process holds a device once, however many communicators live on it: their arrays come from the
same slice. It lets go when the last of them does. What earlier users left is zeroed before it is
handed out, step by step.
"""

from __future__ import annotations

import os
import secrets
import weakref

from hbmcomm.errors import ArenaUnavailable, KindUnavailable
from hbmcomm.memory.dax import claims, devices
from hbmcomm.memory.dax.claims import Claim
from hbmcomm.memory.dax.devices import Device
from hbmcomm.memory.policy import kernel
from hbmcomm.memory.shared.ground import Ground
from hbmcomm.memory.shared.heap import STEP
from hbmcomm.memory.shared.segment import HUGE_PAGE, Mapping


class Holding(Ground):
    """This process's part in a device; its slice is the ground.

    Attributes:
        device, token: What is held, and the number that the ranks of this job drew for it.
        line, lines: This process's number among them, and how many they are.
        table: Where the device begins here.
        mapping: Keeps the device mapped.
    """

    def __init__(self, device: Device, mapping: Mapping, line: int, lines: int) -> None:
        self.device, self.mapping = device, mapping
        self.token = b""
        self.line, self.lines = line, lines
        self.table = mapping.address
        self._slice = slice_bytes(device, lines)
        super().__init__(devices.kind_of(device), self.start_of(line), self._slice)
        self._claims: list[Claim] = []
        # First the claim, then the mapping that it is in.
        self._release = weakref.finalize(self, _release, self._claims, mapping)
        self._release.atexit = False

    def start_of(self, line: int) -> int:
        """Where the slice of a rank begins here."""
        return self.table + claims.TABLE_BYTES + line * self._slice

    def release(self) -> None:
        """Let go at once."""
        self._release()

    def limit(self, keep: int) -> None:
        """Nothing: a device's memory is no part of the system's."""

    def claim_first(self) -> bytes:
        """Take the device for a job, as its first rank; the token that the others need.

        Raises:
            KindUnavailable: Another job has it; says who.
        """
        own = claims.take(self.table, self.line)
        if own is not None:
            self._claims.append(own)
        others = claims.owners(self.table)
        others.pop(self.line if own is not None else -1, None)
        if own is None or others:
            who = next(iter(others.values()), "a process that just ended")
            raise KindUnavailable(
                f"device={self.device.path} is in use by {who}"
                + (f" and {len(others) - 1} more" if len(others) > 1 else "")
                + "; wait for that job to end or end it, or take another device"
            )
        self.token = secrets.token_bytes(claims.TOKEN_BYTES)
        claims.write_token(self.table, self.token)
        return self.token

    def claim_with(self, token: bytes) -> None:
        """Take the own line of a device that the first rank has taken.

        Raises:
            ArenaUnavailable: What is mapped here is another device.
        """
        if claims.read_token(self.table) != token:
            raise ArenaUnavailable(
                f"{self.device.path} is another device here than on the first rank, or was cut "
                "differently; start the ranks on one machine, or do without device="
            )
        own = claims.take(self.table, self.line)
        if own is None:
            who = claims.owners(self.table).get(self.line, "a process that just ended")
            raise KindUnavailable(f"device={self.device.path} is in use by {who}")
        self._claims.append(own)
        self.token = token

    def _fill(self, start: int, end: int) -> None:
        """Zero steps that are used for the first time since the device was taken."""
        kernel.zero(self.address + start, end - start)


class Holdings:
    """The devices that this process holds; the registry itself keeps none."""

    def __init__(self) -> None:
        self._held: weakref.WeakValueDictionary[tuple[int, tuple[int, int]], Holding]
        self._held = weakref.WeakValueDictionary()

    def of(self, device: Device) -> Holding | None:
        """What this process holds of a device already; a child of a fork holds nothing."""
        return self._held.get((os.getpid(), device.number))

    def keep(self, holding: Holding) -> None:
        """Let later communicators of this process find it."""
        self._held[os.getpid(), holding.device.number] = holding


HERE = Holdings()
"""Of this process."""


def begin(device: Device, line: int, lines: int) -> Holding:
    """Map a device; it is not claimed yet.

    Raises:
        KindUnavailable: Opening or mapping it is refused.
    """
    nbytes = device.nbytes // device.alignment * device.alignment
    descriptor = devices.open_file(device)
    try:
        mapping = Mapping(descriptor, nbytes, max(HUGE_PAGE, device.alignment))
    except OSError as error:
        raise KindUnavailable(
            f"device={device.path}: mapping its {nbytes:,} bytes was refused ({error})"
        ) from None
    finally:
        os.close(descriptor)
    return Holding(device, mapping, line, lines)


def slice_bytes(device: Device, lines: int) -> int:
    """What each rank's slice has, in whole steps; 0 or less: the device is too small."""
    mapped = device.nbytes // device.alignment * device.alignment
    return (mapped - claims.TABLE_BYTES) // lines // STEP * STEP


def _release(claimed: list[Claim], mapping: Mapping) -> None:
    while claimed:
        claimed.pop().give_back()
    del mapping
