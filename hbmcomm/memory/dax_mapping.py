"""A device as a process maps it: whole, with one slice for each rank of the job.

    owner table | slice of rank 0 | slice of rank 1 | ...

A process maps a device once, however many communicators use it: their arrays come from the same
slice. The last of them releases it. Bytes of earlier users are zeroed step by step, before an array
gets them.
"""

from __future__ import annotations

import os
import secrets
import weakref

from hbmcomm.errors import ArenaUnavailable, KindUnavailable
from hbmcomm.memory import dax_file, kernel, owner_table
from hbmcomm.memory.dax_file import DaxFile
from hbmcomm.memory.owner_table import OwnedLine
from hbmcomm.memory.pool import STEP, Pool
from hbmcomm.memory.segment import HUGE_PAGE, Mapping


class DeviceMapping(Pool):
    """This process's mapping of a device; its slice is the pool.

    Attributes:
        device, token: The device, and the random number of the job that has it.
        line, lines: This process's line of the owner table, and the number of lines of the job.
        table: Address of the owner table, at the beginning of the device.
        mapping: Keeps the device mapped.
    """

    def __init__(self, device: DaxFile, mapping: Mapping, line: int, lines: int) -> None:
        self.device, self.mapping = device, mapping
        self.token = b""
        self.line, self.lines = line, lines
        self.table = mapping.address
        self._slice = slice_bytes(device, lines)
        super().__init__(dax_file.kind_of(device), self.start_of(line), self._slice)
        self._owned: list[OwnedLine] = []
        # First the line, then the mapping that it is in.
        self._release = weakref.finalize(self, _release, self._owned, mapping)
        self._release.atexit = False

    def start_of(self, line: int) -> int:
        """The address of a rank's slice in this process."""
        return self.table + owner_table.TABLE_BYTES + line * self._slice

    def release(self) -> None:
        self._release()

    def limit_idle(self, nbytes: int) -> None:
        """Does nothing: the system cannot use a device's memory."""

    def claim_first(self) -> bytes:
        """Take the device for a job, as its first rank; the token that the others need.

        Raises:
            KindUnavailable: Another job has it; names its process.
        """
        own = owner_table.take(self.table, self.line)
        if own is not None:
            self._owned.append(own)
        others = owner_table.owners(self.table)
        others.pop(self.line if own is not None else -1, None)
        if own is None or others:
            owner = next(iter(others.values()), "a process that just ended")
            raise KindUnavailable(
                f"device={self.device.path} is in use by {owner}"
                + (f" and {len(others) - 1} more" if len(others) > 1 else "")
                + "; wait for that job to end or end it, or take another device"
            )
        self.token = secrets.token_bytes(owner_table.TOKEN_BYTES)
        owner_table.write_token(self.table, self.token)
        return self.token

    def claim_with(self, token: bytes) -> None:
        """Take this rank's line of a device that the first rank has taken.

        Raises:
            ArenaUnavailable: Another device is mapped here.
        """
        if owner_table.read_token(self.table) != token:
            raise ArenaUnavailable(
                f"{self.device.path} is another device here than on the first rank, or has other "
                "bounds; start the ranks on one machine, or leave device= out"
            )
        own = owner_table.take(self.table, self.line)
        if own is None:
            owner = owner_table.owners(self.table).get(self.line, "a process that just ended")
            raise KindUnavailable(
                f"device={self.device.path} is in use by {owner}; "
                "wait for it to end, or take another device"
            )
        self._owned.append(own)
        self.token = token

    def _fill(self, start: int, end: int) -> None:
        """Zero steps that are used for the first time since the device was taken."""
        kernel.zero(self.address + start, end - start)


class DeviceMappings:
    """The devices that this process maps, by weak references."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[int, tuple[int, int]], DeviceMapping]
        self._known = weakref.WeakValueDictionary()

    def of(self, device: DaxFile) -> DeviceMapping | None:
        """This process's mapping of a device, if there is one; never that of a fork's parent."""
        return self._known.get((os.getpid(), device.number))

    def add(self, mapping: DeviceMapping) -> None:
        """Let later communicators of this process find it."""
        self._known[os.getpid(), mapping.device.number] = mapping


OF_PROCESS = DeviceMappings()
"""Mappings of this process."""


def map_device(device: DaxFile, line: int, lines: int) -> DeviceMapping:
    """Map a device that no line is taken of yet.

    Raises:
        KindUnavailable: Opening or mapping it is refused.
    """
    nbytes = _usable_bytes(device)
    descriptor = dax_file.open_file(device)
    try:
        mapping = Mapping(descriptor, nbytes, max(HUGE_PAGE, device.alignment))
    except OSError as error:
        raise KindUnavailable(
            f"device={device.path}: mapping its {nbytes:,} bytes was refused ({error}); "
            "take another device, or leave device= out"
        ) from None
    finally:
        os.close(descriptor)
    return DeviceMapping(device, mapping, line, lines)


def slice_bytes(device: DaxFile, lines: int) -> int:
    """Bytes of each rank's slice, in whole steps; 0 or less: the device is too small."""
    return (_usable_bytes(device) - owner_table.TABLE_BYTES) // lines // STEP * STEP


def _usable_bytes(device: DaxFile) -> int:
    return device.nbytes // device.alignment * device.alignment


def _release(owned: list[OwnedLine], mapping: Mapping) -> None:
    while owned:
        owned.pop().give_back()
    del mapping
