"""Transport `direct`: the C core moves the data through memory that all ranks map.

The first line of each call passes plain NumPy arrays to the core as they are. Arguments that the
core cannot read take the slow path (`direct_base`).
"""

from __future__ import annotations

import functools
from typing import Any

from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

from hbmcomm.collectives.core.native import FOREIGN, OPERATIONS, REDUCTIONS, lib
from hbmcomm.collectives.transports.direct_base import DirectBase
from hbmcomm.collectives.transports.nonblocking import Nonblocking

_barrier, _bcast, _blocks, _fold = lib.hbm_barrier, lib.hbm_bcast, lib.hbm_blocks, lib.hbm_reduce
_GATHER, _SCATTER = lib.HBM_GATHER, lib.HBM_SCATTER
_ALLGATHER, _ALLTOALL = lib.HBM_ALLGATHER, lib.HBM_ALLTOALL
_REDUCE, _ALLREDUCE = lib.HBM_REDUCE, lib.HBM_ALLREDUCE
_SCAN, _EXSCAN = lib.HBM_SCAN, lib.HBM_EXSCAN
_REDUCE_SCATTER_BLOCK = lib.HBM_REDUCE_SCATTER_BLOCK

_code = {id(getattr(MPI, name)): code for code, name in enumerate(REDUCTIONS)}.get


class Direct(Nonblocking, DirectBase):
    """The collectives of the C core; arguments, results and errors as in mpi4py."""

    def Barrier(self) -> None:
        status = _barrier(self._core)
        if status:
            self._again(status, "Barrier")

    def Bcast(self, buf: BufSpec, root: int = 0) -> None:
        status = _bcast(self._core, id(buf), root)
        if status:
            self._again(status, "Bcast", buf, root)

    def Gather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> None:
        status = _blocks(self._core, _GATHER, id(sendbuf), id(recvbuf), root)
        if status:
            self._again(status, "Gather", sendbuf, recvbuf, root)

    def Scatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        status = _blocks(self._core, _SCATTER, id(sendbuf), id(recvbuf), root)
        if status:
            self._again(status, "Scatter", sendbuf, recvbuf, root)

    def Allgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> None:
        status = _blocks(self._core, _ALLGATHER, id(sendbuf), id(recvbuf), 0)
        if status:
            self._again(status, "Allgather", sendbuf, recvbuf)

    def Alltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> None:
        status = _blocks(self._core, _ALLTOALL, id(sendbuf), id(recvbuf), 0)
        if status:
            self._again(status, "Alltoall", sendbuf, recvbuf)

    def Gatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV | None, root: int = 0) -> None:
        self._again(lib.HBM_UNREADABLE, "Gatherv", sendbuf, recvbuf, root)

    def Scatterv(self, sendbuf: BufSpecV | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        self._again(lib.HBM_UNREADABLE, "Scatterv", sendbuf, recvbuf, root)

    def Allgatherv(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV) -> None:
        self._again(lib.HBM_UNREADABLE, "Allgatherv", sendbuf, recvbuf)

    def Alltoallv(self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV) -> None:
        self._again(lib.HBM_UNREADABLE, "Alltoallv", sendbuf, recvbuf)

    def Reduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
    ) -> None:
        status = _fold(self._core, _REDUCE, id(sendbuf), id(recvbuf), _code(id(op), -1), root)
        if status:
            self._again(status, "Reduce", sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM) -> None:
        status = _fold(self._core, _ALLREDUCE, id(sendbuf), id(recvbuf), _code(id(op), -1), 0)
        if status:
            self._again(status, "Allreduce", sendbuf, recvbuf, op)

    def Reduce_scatter_block(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: MPI.Op = MPI.SUM
    ) -> None:
        code = _code(id(op), -1)
        status = _fold(self._core, _REDUCE_SCATTER_BLOCK, id(sendbuf), id(recvbuf), code, 0)
        if status:
            self._again(status, "Reduce_scatter_block", sendbuf, recvbuf, op)

    def Reduce_scatter(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Any = None,
        op: MPI.Op = MPI.SUM,
    ) -> None:
        self._again(lib.HBM_UNREADABLE, "Reduce_scatter", sendbuf, recvbuf, recvcounts, op)

    def Scan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM) -> None:
        status = _fold(self._core, _SCAN, id(sendbuf), id(recvbuf), _code(id(op), -1), 0)
        if status:
            self._again(status, "Scan", sendbuf, recvbuf, op)

    def Exscan(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM) -> None:
        status = _fold(self._core, _EXSCAN, id(sendbuf), id(recvbuf), _code(id(op), -1), 0)
        if status:
            self._again(status, "Exscan", sendbuf, recvbuf, op)


def _announced(name: str) -> Any:
    original = getattr(MPI.Intracomm, name)

    @functools.wraps(original)
    def call(self: Direct, *arguments: Any, **named: Any) -> Any:
        self._announce(name)
        return original(self, *arguments, **named)

    return call


for _name in FOREIGN:
    if _name not in OPERATIONS:
        setattr(Direct, _name, _announced(_name))
