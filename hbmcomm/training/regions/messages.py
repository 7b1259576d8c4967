"""Small messages of MPI between ranks; a wait ends when the other rank has died."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from hbmcomm.errors import PeerError
from hbmcomm.hierarchical.wire import Patience

_GRACE = 0.5  # seconds


class Messages:
    """Messages on a communicator of their own.

    Args:
        comm: Only this object sends on it.
        look: Raises PeerError where a rank is gone; called with the seconds of the wait.
    """

    def __init__(self, comm: MPI.Intracomm, look: Callable[[float], None]) -> None:
        self._comm, self._look = comm, look

    def send(self, value: Any, target: int, tag: int) -> None:
        """Send a value that can be pickled."""
        self._until(self._comm.isend(value, target, tag).Test)

    def receive(self, source: int, tag: int) -> Any:
        """The next value from a rank."""
        self._until(lambda: self._comm.iprobe(source, tag))
        return self._comm.recv(None, source, tag)

    def meet(self) -> None:
        """Wait until all ranks are here; collective."""
        self._until(self._comm.Ibarrier().Test)

    def _until(self, is_done: Callable[[], bool]) -> None:
        patience = Patience(self._look)
        while not is_done():
            try:
                patience.wait()
            except PeerError:  # what a rank did before it left may only be seen now
                end = time.monotonic() + _GRACE
                while not is_done():
                    if time.monotonic() > end:
                        raise
                return
