"""Requests of nonblocking calls that the core does.

Each is a generalized request of MPI, so that MPI's own `Waitall`, `Testany` and so on accept it
among others. Every wait makes progress on it: the library's on any communicator, and MPI's, which
polls the core (`mpi_progress`).
"""

from __future__ import annotations

from typing import Literal, Protocol

from mpi4py import MPI

from hbmcomm.collectives.core.native import lib

_wait, _test = lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING = lib.HBM_PENDING


class Owner(Protocol):
    """A communicator, which raises the errors of the core's statuses."""

    def _check(self, status: int) -> None: ...

    def _reported(self, error: BaseException) -> BaseException: ...


class CollectiveRequest(MPI.Request):
    """What requests of collectives have in common, whatever completes them."""

    def wait(self, status: MPI.Status | None = None) -> None:
        """Wait, in mpi4py's lower case; there is no object to return."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Test, in mpi4py's lower case; there is no object to return."""
        return self.Test(status), None

    def Free(self) -> None:
        """Refused, as MPI refuses it for collectives, unless the call is complete."""
        if not self.Test():
            raise MPI.Exception(MPI.ERR_REQUEST)


class Request(CollectiveRequest):
    """A nonblocking collective; `Wait` and `Test` as in MPI, `Cancel` is refused.

    Its buffers stay alive until it is complete, even if the request is dropped. Those of requests
    that MPI's own Waitall and so on completed stay until a few more calls were started.
    """

    _operation: int = 0
    """The core's number of the operation; 0: it is complete, but MPI may not have freed it."""
    _kept: tuple[Owner, object]
    """The communicator, and the objects that keep the buffers alive."""

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the operation is complete.

        Raises:
            KeyboardInterrupt, or any exception of a signal handler: the operation is still in
                flight then, and can be waited for again.
        """
        operation = self._operation
        if operation:
            found = _wait(operation, id(self))
            if found:
                self._fail(found)
            # a signal handler may raise right after the core returns; the next Wait repeats this
            self._operation = 0
            in_flight.pop(operation, None)
        elif status is None:
            _take_back(id(self))
        return True if status is None else super().Wait(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the operation is complete; never blocks."""
        operation = self._operation
        if operation:
            found = _test(operation, id(self))
            if found == _PENDING:
                return False
            if found:
                self._fail(found)
            self._operation = 0
            in_flight.pop(operation, None)
        elif status is None:
            _take_back(id(self))
        return True if status is None else super().Test(status)

    def _fail(self, status: int) -> None:
        operation = self._operation
        if status != _PENDING:
            lib.hbm_drop_once(operation)
            self._operation = 0
            in_flight.pop(operation, None)
        self._kept[0]._check(status)


in_flight: dict[int, Request] = {}
"""Operations that may be incomplete, by their numbers: keeps their buffers alive."""

_most = 1
"""With more requests in flight than this, `track` looks for those that MPI has completed."""


def track(request: Request, operation: int) -> None:
    """Record that a request's operation is in flight."""
    global _most
    request._operation = operation
    in_flight[operation] = request
    if len(in_flight) > _most:
        for number, each in list(in_flight.items()):
            if not each:  # MPI has returned its status, perhaps in a wait that another thread is in
                lib.hbm_drop_once(number)
                in_flight.pop(number, None)
        _most = 2 * len(in_flight)
