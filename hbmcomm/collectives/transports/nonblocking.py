"""The nonblocking calls of transport `direct`: started here, completed in any later wait.

Each returns a `Request`. Calls that only MPI can do stay MPI's; so do all calls where MPI neither
polls other libraries nor supports calls of several threads.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.calls.requests import Request, track
from hbmcomm.collectives.core import mpi_progress
from hbmcomm.collectives.core.native import lib
from hbmcomm.collectives.transports.direct_base import DirectBase

_LAST = lib.HBM_LAST_STATUS


class Nonblocking(DirectBase):
    """The parts of MPI's `I*` calls that need Python; `direct` has the rest."""

    def _started(self, request: Request, found: int, name: str, *arguments: Any) -> MPI.Request:
        """The request of a call that the core has started, or else starts now.

        `found` is the core's return value; the others are those of `_again`.
        """
        if found > _LAST:
            request._kept = (self, arguments)
            track(request, found)
            return request
        return self._start(request, found, name, *arguments)

    def _start(self, request: Request, status: int, name: str, *arguments: Any) -> MPI.Request:
        """The slow path: arguments that Python must read, and calls that only MPI can do."""
        if not mpi_progress.serves_requests():
            return self._mpi_starts(name, *arguments)
        call = self._read(status, name, *arguments)
        if not isinstance(call, Call):
            return self._mpi_starts(name, *arguments)
        found = lib.hbm_start_once(self._core, call.call, id(request))
        if found in (lib.HBM_COPY_FIRST, lib.HBM_UNSERVED):
            return self._start(request, found, name, *arguments)
        if found > _LAST:
            request._kept = (self, call)
            track(request, found)
        else:
            self._check(found)
        return request

    def _mpi_starts(self, name: str, *arguments: Any) -> MPI.Request:
        request: MPI.Request = getattr(MPI.Intracomm, f"I{name.lower()}")(self, *arguments)
        return request
