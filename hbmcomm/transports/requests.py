"""Requests of nonblocking calls that the core does.

Each is a generalized request of MPI, so that MPI's own `Waitall`, `Testany` and so on accept it
among others. Every wait makes progress on it: the library's on any communicator, and MPI's, which
polls the core (`mpi_progress`).
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from mpi4py import MPI

from hbmcomm.transports.native import lib

_wait, _test = lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING = lib.HBM_PENDING
NOTHING = ()


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
    that were dropped, or that MPI's own Waitall and so on completed, stay until a few more calls
    were started.
    """

    _operation: int = 0
    """The core's number of the operation; 0: it is complete, but MPI may not have freed it."""
    _kept: tuple[Any, ...]
    """While it is in flight: the communicator, an `Owner`, and what keeps the buffers alive."""

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the operation is complete.

        Raises:
            KeyboardInterrupt, or any exception of a signal handler: the operation is still in
                flight then, and can be waited for again.
        """
        operation = self._operation
        if operation:
            code = _wait(operation, id(self))
            if code:
                self._fail(code)
            # a signal handler may raise right after the core returns; the next Wait repeats this
            self._operation = 0
            in_flight.pop(operation, None)
            self._kept = NOTHING
        elif status is None:
            _take_back(id(self))
        return True if status is None else super().Wait(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the operation is complete; never blocks."""
        operation = self._operation
        if operation:
            code = _test(operation, id(self))
            if code == _PENDING:
                return False
            if code:
                self._fail(code)
            self._operation = 0
            in_flight.pop(operation, None)
            self._kept = NOTHING
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


in_flight: dict[int, MPI.Request] = {}
"""Requests and plans whose operations may be incomplete, by the numbers of these.

The core adds them as it starts the operations, and removes those that the program has dropped or
MPI has completed. It keeps their buffers alive.
"""
lib.hbm_keep_in(id(in_flight))
