"""A device as the ranks of one job hold it: mapped whole, cut into one slice for each rank.

    table of claims | slice of rank 0 | slice of rank 1 | ...

A process holds a device once, however many communicators live on it: their arrays and control areas
come from the same slice. It lets go when the last of them does. What earlier users left is zeroed
before it is handed out, stretch by stretch.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import threading
import weakref
from collections.abc import Sequence

from hbmcomm.errors import ArenaUnavailable, KindUnavailable, OutOfMemory
from hbmcomm.memory import kernel
from hbmcomm.memory.dax import claims as claim
from hbmcomm.memory.dax import devices as dax
from hbmcomm.memory.dax.claims import Claim
from hbmcomm.memory.dax.devices import Device
from hbmcomm.memory.heap import Heap, Stretch
from hbmcomm.memory.segment import HUGE_PAGE, Segment

STEP = 2 * 2**20
_AT_ONCE = 64 * STEP
_SIGN_OUT_BYTES = claim.LINES
"""Behind a control area: one byte for each rank, which it sets when it has left for good."""


class Holding:
    """This process's part in a device; also the ground of its arenas.

    Attributes:
        device, token: what is held, and the number that the ranks of this job drew for it.
        line: this process's number among them.
        table: where the device begins here.
        address, nbytes, heap: this process's slice.
    """

    def __init__(self, device: Device, segment: Segment, line: int, lines: int) -> None:
        self.device = device
        self.token = b""
        self.line, self.lines = line, lines
        self.table = segment.address
        self.nbytes = slice_bytes(device, lines)
        self.address = self.start_of(line)
        self.heap = Heap(0, self.nbytes)
        self._process = os.getpid()
        self._zeroed = 0
        self._zeroing = threading.Lock()
        self._left: list[tuple[Stretch, int, int]] = []
        self._collecting = threading.Lock()
        self._claims: list[Claim] = []
        # First the claim, then the mapping that it lies in.
        self._release = weakref.finalize(self, _release, self._claims, segment)
        self._release.atexit = False

    def start_of(self, line: int) -> int:
        """Where the slice of a rank begins here."""
        return self.table + claim.TABLE_BYTES + line * self.nbytes

    def release(self) -> None:
        """Let go at once."""
        self._release()

    def hold(self, end: int) -> None:
        """Zero the slice up to an offset, unless this was done since the device was taken."""
        wanted = min(-(-end // STEP) * STEP, self.nbytes)
        with self._zeroing:  # communicators of several threads share the slice
            while self._zeroed < wanted:
                length = min(wanted - self._zeroed, _AT_ONCE)
                kernel.zero(self.address + self._zeroed, length)
                self._zeroed += length

    def control(self, nbytes: int) -> Stretch:
        """A stretch of zeros for a communicator's control area; arrays may begin at its end.

        Raises:
            OutOfMemory: The slice has none left.
        """
        self._collect()
        taken = self.heap.take(nbytes + _SIGN_OUT_BYTES, STEP)
        if taken is None:
            raise OutOfMemory(
                f"dax: a communicator needs {nbytes:,} bytes in this rank's {self.nbytes:,} of "
                f"{self.device.path}, and they are taken; free communicators or arrays"
            )
        self.hold(taken.end)
        kernel.zero(self.address + taken.start, taken.end - taken.start)
        return taken

    def leave(self, areas: Sequence[int], rank: int, own: Stretch) -> None:
        """Sign out of a communicator: no area of it is touched from here any more.

        Args:
            areas: Where each rank's control area begins here.
            rank: This one's among them.
            own: The stretch of the own area, which serves again once all have signed out.
        """
        if os.getpid() != self._process:  # the child of a fork has nothing to say
            return
        behind = own.end - own.start - _SIGN_OUT_BYTES
        for area in areas:
            ctypes.memset(area + behind + rank, 1, 1)
        self._left.append((own, self.address + own.start + behind, len(areas)))

    def _collect(self) -> None:
        with self._collecting:  # two threads would find the same area, and give it back twice
            for left in list(self._left):
                own, signatures, ranks = left
                if ctypes.string_at(signatures, ranks) == b"\1" * ranks:
                    self._left.remove(left)
                    self.heap.give(own)

    def claim_first(self) -> bytes:
        """Take the device for a job, as its first rank; the token that the others need.

        Raises:
            KindUnavailable: Another job has it; says who.
        """
        own = claim.take(self.table, self.line)
        if own is not None:
            self._claims.append(own)
        others = claim.owners(self.table)
        others.pop(self.line if own is not None else -1, None)
        if own is None or others:
            who = next(iter(others.values()), "a process that just ended")
            raise KindUnavailable(
                f"device={self.device.path} is in use by {who}"
                + (f" and {len(others) - 1} more" if len(others) > 1 else "")
                + "; wait for that job to end or end it, or take another device"
            )
        self.token = secrets.token_bytes(claim.TOKEN_BYTES)
        claim.write_token(self.table, self.token)
        return self.token

    def claim_with(self, token: bytes) -> None:
        """Take the own line of a device that the first rank has taken.

        Raises:
            ArenaUnavailable: What is mapped here is another device.
        """
        if claim.read_token(self.table) != token:
            raise ArenaUnavailable(
                f"{self.device.path} is another device here than on the first rank, or was cut "
                "differently; start the ranks on one machine, or do without device="
            )
        own = claim.take(self.table, self.line)
        if own is None:
            who = claim.owners(self.table).get(self.line, "a process that just ended")
            raise KindUnavailable(f"device={self.device.path} is in use by {who}")
        self._claims.append(own)
        self.token = token


def of(device: Device) -> Holding | None:
    """What this process holds of a device already."""
    return _held.get(device.number)


def begin(device: Device, line: int, lines: int) -> Holding:
    """Map a device; it is not claimed yet.

    Raises:
        KindUnavailable: Opening or mapping it is refused.
    """
    nbytes = device.nbytes // device.alignment * device.alignment
    descriptor = dax.open_file(device)
    try:
        segment = Segment(descriptor, nbytes, max(HUGE_PAGE, device.alignment))
    except OSError as error:
        raise KindUnavailable(
            f"device={device.path}: mapping its {nbytes:,} bytes was refused ({error})"
        ) from None
    segment.close_file()
    return Holding(device, segment, line, lines)


def keep(holding: Holding) -> None:
    """Let later communicators of this process find it."""
    _held[holding.device.number] = holding


def slice_bytes(device: Device, lines: int) -> int:
    """What each rank's slice has, in whole steps; 0 or less: the device is too small."""
    mapped = device.nbytes // device.alignment * device.alignment
    return (mapped - claim.TABLE_BYTES) // lines // STEP * STEP


def _release(claims: list[Claim], segment: Segment) -> None:
    while claims:
        claims.pop().give_back()
    del segment


_held: weakref.WeakValueDictionary[tuple[int, int], Holding] = weakref.WeakValueDictionary()
