"""Requests of nonblocking calls that the core does: mpi4py's, and in flight here.

Each is a generalized request of MPI as well, so that MPI's own `Waitall`, `Testany` and so on take
it among others. While it is in flight every wait brings it forward: ours on any communicator, and
MPI's, whose polling calls the core (`mpi_progress`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, Protocol

from mpi4py import MPI

from hbmcomm.collectives.core.native import lib
from hbmcomm.errors import HbmcommError

_wait, _test = lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING = lib.HBM_PENDING


class Owner(Protocol):
    """A communicator that says what a status of the core means."""

    def _check(self, status: int) -> None: ...


class Request(MPI.Request):
    """A nonblocking collective; `Wait` and `Test` as in MPI, `Cancel` is refused.

    Its buffers live until it is complete, even if the request is dropped.
    """

    _operation: int = 0
    """The core's number of it; 0: it is complete, and MPI may not know that anybody has seen it."""
    _kept: tuple[Owner, object]
    """The communicator, and what keeps the buffers."""

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the operation is complete.

        Raises:
            KeyboardInterrupt, or whatever a signal's handler raises: It is still in flight then,
                and can be waited for again.
        """
        operation = self._operation
        if operation:
            found = _wait(operation, id(self))
            if found:
                self._fail(found)
            # a handler may raise as soon as the core has returned: all this is done again then
            self._operation = 0
            del in_flight[operation]
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
            del in_flight[operation]
        elif status is None:
            _take_back(id(self))
        return True if status is None else super().Test(status)

    def wait(self, status: MPI.Status | None = None) -> None:
        """Wait, in mpi4py's lower case; there is no object to return."""
        self.Wait(status)

    def test(self, status: MPI.Status | None = None) -> tuple[bool, None]:
        """Test, in mpi4py's lower case; there is no object to return."""
        return self.Test(status), None

    def Free(self) -> None:
        """Refused, as MPI refuses it for collectives, unless the operation is complete."""
        if not self.Test():
            raise MPI.Exception(MPI.ERR_REQUEST)

    def _fail(self, status: int) -> None:
        operation = self._operation
        if status != _PENDING:
            lib.hbm_drop_once(operation)
            self._operation = 0
            del in_flight[operation]
        self._kept[0]._check(status)


in_flight: dict[int, Request] = {}
"""Operations that are not known to be complete, by their numbers: keeps their buffers."""

_MANY = 64
"""Requests that may be in flight before those are looked for that MPI has completed by itself."""


def let_fly(request: Request, operation: int) -> None:
    """Note that a request's operation is in flight."""
    request._operation = operation
    in_flight[operation] = request
    if len(in_flight) > _MANY and not len(in_flight) % _MANY:
        for each in list(in_flight.values()):
            if not each:  # MPI has returned its status
                with suppress(HbmcommError):
                    each.Test()
