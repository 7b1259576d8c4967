"""Calls on a thread of their own, as requests and plans.

Each has a generalized request of MPI, so that MPI's own `Waitall`, `Testany` and so on accept it
among others.
"""

from __future__ import annotations

import ctypes
import operator
import threading
import weakref
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal

from mpi4py import MPI

from hbmcomm.errors import HbmcommError
from hbmcomm.transports.plans import ACTIVE, Plan
from hbmcomm.transports.requests import CollectiveRequest

_HANDLE = MPI._sizeof(MPI.Request)

Reported = Callable[[BaseException], BaseException]


class Operation:
    """A call in flight.

    Args:
        reported: Has an error handler see the error before it is raised.

    Attributes:
        is_complete: Whether it is.
        error: Why it failed, once it is complete.
    """

    def __init__(self, act: Callable[[], None], reported: Reported | None = None) -> None:
        self._act: Callable[[], None] | None = act
        self._reported = reported
        self.is_complete = False
        # not an Event: a signal's handler may raise in its Python code, and leave it locked
        self._gate = threading.Lock()
        self._gate.acquire()
        self._generalized: Any = None
        self._failures: list[bytearray] = []
        self.error: BaseException | None = None

    def putting_in(self, request: MPI.Request) -> Callable[[], Any]:
        """The function in C that makes an object of mpi4py this operation's request."""
        # MPI's waits call this: not a Python function, in which a signal's handler might raise. It
        # fails, as mpi4py's callbacks do, by an exception: what cannot be a key.
        query: Any = partial(dict.fromkeys, self._failures)
        self._generalized = MPI.Grequest.Start(query)
        to, source = (MPI._addressof(each) for each in (request, self._generalized))
        return partial(ctypes.memmove, to, source, _HANDLE)

    def run(self) -> None:
        """Do the call, on the engine's thread."""
        act, self._act = self._act, None  # its buffers are kept until here
        assert act is not None
        try:
            act()
        except BaseException as error:  # raised where it is waited for
            self.error = error
            self._failures.append(bytearray(b"the collective failed"))

    def complete(self) -> None:
        """Wake the threads that wait."""
        if self._generalized is not None:
            MPI.Grequest.Complete(self._generalized)
        self.is_complete = True
        self._gate.release()

    def until_complete(self) -> None:
        while not self.is_complete:
            self._gate.acquire()

    def wait(self) -> None:
        """Wait for it; raises its error."""
        self.until_complete()
        self.check()

    def take(self) -> None:
        """Have MPI say that all is well: the error is raised by the caller."""
        self._failures.clear()

    def check(self) -> None:
        """Raise the error of one that is complete."""
        if self.error is not None:
            raise self._reported(self.error) if self._reported else self.error


class Request(CollectiveRequest):
    """A nonblocking call; `Wait` and `Test` as in MPI, `Cancel` is refused."""

    _operation: Operation | None = None

    @classmethod
    def of(cls, operation: Operation) -> Request:
        """The request of a new operation."""
        request = cls()
        operation.putting_in(request)()
        request._operation = operation
        return request

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the call is complete; raises its error."""
        _finish(self, super().Wait, status)
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the call is complete; never blocks."""
        return _finish_if_complete(self, super().Wait, status)


class ThreadedPlan(Plan):
    """The result of the `*_init` calls of transport `hierarchical`."""

    __slots__ = ("_new", "_operation", "_putting_in_flight", "_reported", "_run")
    _run: Callable[[], None]
    """Does the call from beginning to end."""
    _new: Callable[[], Operation]
    _putting_in_flight: Callable[[Operation], tuple[Callable[[], Any], ...]]
    """The functions in C that put an operation in flight."""
    _reported: Reported
    _operation: Operation | None

    @classmethod
    def of(
        cls,
        run: Callable[[], None],
        new: Callable[[], Operation],
        putting_in_flight: Callable[[Operation], tuple[Callable[[], Any], ...]],
        reported: Reported,
    ) -> ThreadedPlan:
        """A new plan."""
        plan: ThreadedPlan = MPI.Prequest.__new__(cls)
        plan._run, plan._new, plan._operation = run, new, None
        plan._putting_in_flight, plan._reported = putting_in_flight, reported
        return plan

    def __call__(self) -> None:
        self._check_inactive()
        self._run()

    def _starting(self, _status: int) -> tuple[Any, ...]:
        """How `Start` starts the collective; see methods.c.

        Raises:
            HbmcommError: The plan is active, or was freed.
        """
        self._check_inactive()
        operation = self._new()
        begin = partial(setattr, self, "_operation", operation)
        return None, operation.putting_in(self), begin, *self._putting_in_flight(operation)

    def _check_inactive(self) -> None:
        """Raise unless MPI's own Waitall or the like completed the plan and freed its handle."""
        if self._operation is not None and (self != MPI.REQUEST_NULL or not self.Test()):
            raise self._reported(HbmcommError(ACTIVE))

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the collective is complete; return at once if it is not started."""
        _finish(self, super().Wait, status)
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the collective is complete; never blocks."""
        return _finish_if_complete(self, super().Wait, status)

    def Free(self) -> None:
        """Release the buffers."""
        if not self.Test():
            raise self._reported(HbmcommError("this plan is started; call Wait() before Free()"))
        self._run, self._new = self._refuse, self._refuse

    def _refuse(self) -> Any:
        raise self._reported(
            HbmcommError("this plan was freed; make a new one with the *_init call")
        )


def _finish(request: Any, wait: Callable[[Any], Any], status: Any) -> None:
    """Wait for a request's operation, and free MPI's request; raises the operation's error.

    An exception of a signal's handler, at any step, leaves the request fit for another wait.
    """
    operation: Operation | None = request._operation
    if operation is not None:
        operation.until_complete()
        operation.take()
    wait(status)
    request._operation = None
    if operation is not None:
        operation.check()


def _finish_if_complete(request: Any, wait: Callable[[Any], Any], status: Any) -> bool:
    """Finish a request if that does not block; whether it is complete."""
    operation: Operation | None = request._operation
    if operation is not None and not operation.is_complete:
        return False
    _finish(request, wait, status)
    return True


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
