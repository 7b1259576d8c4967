"""The two ends of an allocation of regions, over shared memory or over MPI's one-sided calls.

An end makes bytes and flags visible to the other, and waits for the other's flags. It knows nothing
of tensors. Offsets are from the beginning of the allocation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm import Communicator, Flags, PeerError
from hbmcomm.training.together import Patience

Bytes = NDArray[np.uint8]
_MOST = 2**30  # bytes of one call of MPI
_UNUSED_TAG = 32767  # the highest that every MPI has


class End(Protocol):
    """One end.

    Attributes:
        memory: The allocation: that of the consumer itself, or what becomes of it when posted.
        copies: Whether posting moves bytes.
    """

    memory: Bytes
    copies: bool

    def post(self, parts: tuple[slice, ...], flag: int, value: int) -> None:
        """Make parts of the memory visible to the other end, then raise a flag.

        Raises:
            PeerError: The other rank is gone.
        """

    def wait(self, flag: int, value: int) -> None:
        """Wait until the other end has raised a flag to at least a value.

        Raises:
            PeerError: The other rank died or left.
        """


class SharedEnd:
    """An end in memory that both ranks map: there is nothing to move.

    Args:
        comm: Its ranks share memory.
        other: The rank at the other end.
    """

    copies = False

    def __init__(self, comm: Communicator, other: int, memory: Bytes) -> None:
        self.memory = memory
        self._comm, self._other = comm, other
        self._flags: dict[int, Flags] = {}  # by offset; each has one writer

    def post(self, parts: tuple[slice, ...], flag: int, value: int) -> None:
        try:
            flags = self._flags[flag]
        except KeyError:
            flags = self._made(flag, self._comm.rank)
        flags.raise_to(value)

    def wait(self, flag: int, value: int) -> None:
        try:
            flags = self._flags[flag]
        except KeyError:
            flags = self._made(flag, self._other)
        flags.wait(value)

    def _made(self, flag: int, writer: int) -> Flags:
        word = self.memory[flag : flag + 8].view(np.uint64)
        self._flags[flag] = self._comm.flags(word, writer)
        return self._flags[flag]


class WindowEnd:
    """An end of two ranks that share no memory: each has the allocation, and puts what it posts.

    Both have attached theirs to a dynamic window, in an epoch that is open as long as they are.

    Args:
        window: Of all ranks.
        other: The rank at the other end.
        address: Gives the address of the other's memory, for MPI.
        look: Raises PeerError where a flag cannot come; called with the seconds of the wait.
        refuse_gone: Raises PeerError where the other rank has died or left: MPI would wait for it.
    """

    copies = True

    def __init__(
        self,
        window: MPI.Win,
        other: int,
        memory: Bytes,
        address: Callable[[], int],
        look: Callable[[float], None],
        refuse_gone: Callable[[], None],
    ) -> None:
        self.memory = memory
        self._flags = memory[: memory.size // 8 * 8].view(np.uint64)
        self._window, self._other, self._look = window, other, look
        self._address, self._refuse_gone = address, refuse_gone

    def post(self, parts: tuple[slice, ...], flag: int, value: int) -> None:
        self._refuse_gone()
        base, window = self._address(), self._window
        for part in parts:
            for begin in range(part.start, part.stop, _MOST):
                piece = self.memory[begin : min(begin + _MOST, part.stop)]
                window.Put([piece, MPI.BYTE], self._other, [base + begin, piece.size, MPI.BYTE])
        window.Flush(self._other)  # the data is there before the flag
        raised: Any = np.array([value], np.uint64)
        place = [base + flag, 1, MPI.UINT64_T]
        window.Accumulate([raised, MPI.UINT64_T], self._other, place, MPI.REPLACE)
        window.Flush(self._other)

    def wait(self, flag: int, value: int) -> None:
        patience = Patience(self._look)
        while not self._is_raised(flag, value):
            MPI.COMM_WORLD.Iprobe(MPI.ANY_SOURCE, _UNUSED_TAG)  # MPI makes progress
            try:
                patience.wait()
            except PeerError:
                if not self._is_raised(flag, value):  # else it was, just before that rank left
                    raise

    def _is_raised(self, flag: int, value: int) -> bool:
        self._window.Sync()
        return bool(self._flags[flag // 8] >= value)
