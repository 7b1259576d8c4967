"""Runs the calls of one communicator in their order: plain ones on the caller's thread if it can.

Calls in flight run on a thread of their own: they progress whatever the program does meanwhile. MPI
must support calls of several threads for them. A signal's handler may raise anywhere in Python, so
a call is put in flight by functions in C, one after the other.
"""

from __future__ import annotations

import operator
import threading
import weakref
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

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
        self._serving = threading.Lock()
        self._has_thread = False
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
        deque(map(operator.call, self.starting(operation)), maxlen=0)

    def starting(self, operation: Operation) -> tuple[Callable[[], Any], ...]:
        """The functions in C that put a call in flight; until then nothing has changed."""
        if not self._has_thread:
            start_new_thread(_serve, (self._queue, self._serving))  # in C, as Thread.start is not
            self._has_thread = True
        return partial(setattr, self, "_last", operation), partial(self._queue.put, operation)

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


def _serve(queue: _Queue, serving: threading.Lock) -> None:
    """On the thread, until the engine is gone. An interrupted start may leave a second thread."""
    _thread.serves = True
    with serving:
        while (operation := queue.get()) is not None:
            operation.run()
            operation.complete()
            del operation
    queue.put(None)
