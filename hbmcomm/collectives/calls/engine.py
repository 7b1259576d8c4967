"""Runs the calls of one communicator in their order: plain ones on the caller's thread if it can.

Calls in flight run on a thread of their own: they progress whatever the program does meanwhile. MPI
must support calls of several threads for them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from hbmcomm.collectives.calls.threaded import Operation

_Queue = SimpleQueue[Operation | None]
_thread = threading.local()


def is_in_flight() -> bool:
    """Whether this thread does calls in flight, beside the program's own."""
    return getattr(_thread, "serves", False)


class Engine:
    """The calls of one communicator on this rank."""

    def __init__(self) -> None:
        self._queue: _Queue = SimpleQueue()
        self._last: Operation | None = None
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._queue.put, None)

    def run(self, act: Callable[[], None]) -> None:
        """Do a call, after those in flight."""
        if self._last is None or self._last.is_complete:
            act()
            return
        operation = Operation(act)
        self.start(operation)
        operation.wait()

    def start(self, operation: Operation) -> None:
        """Put a call in flight."""
        if self._thread is None:
            self._thread = threading.Thread(target=_serve, args=(self._queue,), daemon=True)
            self._thread.start()
        self._last = operation
        self._queue.put(operation)

    def after(self, act: Callable[[], None]) -> None:
        """Do something once no call is in flight; waits for none."""
        if is_in_flight() or self._last is None or self._last.is_complete:
            act()
        else:
            self.start(Operation(act))

    def drain(self) -> None:
        """Wait until nothing is in flight."""
        if self._last is not None:
            self._last.until_complete()


def _serve(queue: _Queue) -> None:
    """On the thread, until the engine is gone."""
    _thread.serves = True
    while (operation := queue.get()) is not None:
        operation.run()
        operation.complete()
        del operation
