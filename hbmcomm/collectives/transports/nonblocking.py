"""The nonblocking calls of transport `direct`: started here, completed in any later wait.

Each returns a `Request`. Calls that only MPI can do stay MPI's; so do all calls where MPI neither
polls other libraries nor supports calls of several threads.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.calls.requests import Request, track
from hbmcomm.collectives.core import mpi_progress
from hbmcomm.collectives.core.native import REDUCTIONS, lib
from hbmcomm.collectives.transports.direct_base import DirectBase

_ibarrier, _ibcast = lib.hbm_ibarrier, lib.hbm_ibcast
_iblocks, _ifold = lib.hbm_iblocks, lib.hbm_ireduce
_GATHER, _SCATTER = lib.HBM_GATHER, lib.HBM_SCATTER
_ALLGATHER, _ALLTOALL = lib.HBM_ALLGATHER, lib.HBM_ALLTOALL
_REDUCE, _ALLREDUCE = lib.HBM_REDUCE, lib.HBM_ALLREDUCE
_SCAN, _EXSCAN = lib.HBM_SCAN, lib.HBM_EXSCAN
_REDUCE_SCATTER_BLOCK = lib.HBM_REDUCE_SCATTER_BLOCK
_LAST, _UNREADABLE = lib.HBM_LAST_STATUS, lib.HBM_UNREADABLE

_code = {id(getattr(MPI, name)): code for code, name in enumerate(REDUCTIONS)}.get


class Nonblocking(DirectBase):
    """MPI's `I*` calls: the core returns a status, or the number of an operation."""

    def Ibarrier(self) -> MPI.Request:
        request = Request()
        found = _ibarrier(self._core, id(request))
        return self._started(request, found, "Barrier") if found else request

    def Ibcast(self, buf: BufSpec, root: int = 0) -> MPI.Request:
        request = Request()
        found = _ibcast(self._core, id(buf), root, id(request))
        return self._started(request, found, "Bcast", buf, root) if found else request

    def Igather(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0
    ) -> MPI.Request:
        request = Request()
        found = _iblocks(self._core, _GATHER, id(sendbuf), id(recvbuf), root, id(request))
        return self._started(request, found, "Gather", sendbuf, recvbuf, root) if found else request

    def Iscatter(
        self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0
    ) -> MPI.Request:
        request = Request()
        found = _iblocks(self._core, _SCATTER, id(sendbuf), id(recvbuf), root, id(request))
        return (
            self._started(request, found, "Scatter", sendbuf, recvbuf, root) if found else request
        )

    def Iallgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> MPI.Request:
        request = Request()
        found = _iblocks(self._core, _ALLGATHER, id(sendbuf), id(recvbuf), 0, id(request))
        return self._started(request, found, "Allgather", sendbuf, recvbuf) if found else request

    def Ialltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> MPI.Request:
        request = Request()
        found = _iblocks(self._core, _ALLTOALL, id(sendbuf), id(recvbuf), 0, id(request))
        return self._started(request, found, "Alltoall", sendbuf, recvbuf) if found else request

    def Igatherv(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0
    ) -> MPI.Request:
        return self._started(Request(), _UNREADABLE, "Gatherv", sendbuf, recvbuf, root)

    def Iscatterv(
        self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0
    ) -> MPI.Request:
        return self._started(Request(), _UNREADABLE, "Scatterv", sendbuf, recvbuf, root)

    def Iallgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> MPI.Request:
        return self._started(Request(), _UNREADABLE, "Allgatherv", sendbuf, recvbuf)

    def Ialltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> MPI.Request:
        return self._started(Request(), _UNREADABLE, "Alltoallv", sendbuf, recvbuf)

    def Ireduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
    ) -> MPI.Request:
        request, code = Request(), _code(id(op), -1)
        found = _ifold(self._core, _REDUCE, id(sendbuf), id(recvbuf), code, root, id(request))
        return (
            self._started(request, found, "Reduce", sendbuf, recvbuf, op, root)
            if found
            else request
        )

    def Iallreduce(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM
    ) -> MPI.Request:
        request, code = Request(), _code(id(op), -1)
        found = _ifold(self._core, _ALLREDUCE, id(sendbuf), id(recvbuf), code, 0, id(request))
        return (
            self._started(request, found, "Allreduce", sendbuf, recvbuf, op) if found else request
        )

    def Ireduce_scatter_block(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: MPI.Op = MPI.SUM
    ) -> MPI.Request:
        request, code = Request(), _code(id(op), -1)
        found = _ifold(
            self._core, _REDUCE_SCATTER_BLOCK, id(sendbuf), id(recvbuf), code, 0, id(request)
        )
        return (
            self._started(request, found, "Reduce_scatter_block", sendbuf, recvbuf, op)
            if found
            else request
        )

    def Ireduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Any = None,
        op: MPI.Op = MPI.SUM,
    ) -> MPI.Request:
        return self._started(
            Request(), _UNREADABLE, "Reduce_scatter", sendbuf, recvbuf, recvcounts, op
        )

    def Iscan(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM
    ) -> MPI.Request:
        request, code = Request(), _code(id(op), -1)
        found = _ifold(self._core, _SCAN, id(sendbuf), id(recvbuf), code, 0, id(request))
        return self._started(request, found, "Scan", sendbuf, recvbuf, op) if found else request

    def Iexscan(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM
    ) -> MPI.Request:
        request, code = Request(), _code(id(op), -1)
        found = _ifold(self._core, _EXSCAN, id(sendbuf), id(recvbuf), code, 0, id(request))
        return self._started(request, found, "Exscan", sendbuf, recvbuf, op) if found else request

    def _started(self, request: Request, found: int, name: str, *arguments: Any) -> MPI.Request:
        """The request of a call that the core has started, or else starts now.

        `found` is the core's return value, `name` that of the blocking call, and `arguments` are
        mpi4py's, all of them in their order.
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
