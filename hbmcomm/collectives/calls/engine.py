"""Runs the calls of one communicator in their order: plain ones on the caller's thread if it can.

Calls in flight run on a thread of their own, which lives while there are some: they progress
whatever the program does meanwhile. MPI must support calls of several threads for them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from hbmcomm.collectives.calls.threaded import Operation

_IDLE = 1.0  # seconds that the thread waits for another call before it ends


class Engine:
    """The calls of one communicator on this rank."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Operation] = deque()
        self._in_flight = 0
        self._thread: threading.Thread | None = None

    def run(self, act: Callable[[], None]) -> None:
        """Do a call, after those in flight."""
        if not self._in_flight:
            act()
            return
        operation = Operation(act)
        self.start(operation)
        operation.wait()

    def start(self, operation: Operation) -> None:
        """Put a call in flight."""
        with self._condition:
            self._waiting.append(operation)
            self._in_flight += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="hbmcomm", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def drain(self) -> None:
        """Wait until nothing is in flight."""
        with self._condition:
            self._condition.wait_for(lambda: not self._in_flight)

    def _serve(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting, _IDLE)
                if not self._waiting:
                    self._thread = None
                    return
                operation = self._waiting.popleft()
            operation.run()
            with self._condition:
                self._in_flight -= 1
                self._condition.notify_all()
            operation.complete()
