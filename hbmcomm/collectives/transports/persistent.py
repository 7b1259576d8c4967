"""The persistent forms of every transport: arguments are read once, the collective runs many times.

Each call returns a `Plan`: MPI's own persistent request unless a transport has another.
"""

from __future__ import annotations

from typing import Any

from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, BufSpecV, InPlace

from hbmcomm.collectives.calls.plan import Plan

Info = MPI.Info


class Persistent(MPI.Intracomm):
    """MPI's `*_init` calls by way of one `_plan`."""

    def Barrier_init(self, info: Info = MPI.INFO_NULL) -> Plan:
        return self._plan("Barrier", info)

    def Bcast_init(self, buf: BufSpec, root: int = 0, info: Info = MPI.INFO_NULL) -> Plan:
        return self._plan("Bcast", info, buf, root)

    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | None,
        root: int = 0,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Gather", info, sendbuf, recvbuf, root)

    def Scatter_init(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Scatter", info, sendbuf, recvbuf, root)

    def Allgather_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB, info: Info = MPI.INFO_NULL
    ) -> Plan:
        return self._plan("Allgather", info, sendbuf, recvbuf)

    def Alltoall_init(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB, info: Info = MPI.INFO_NULL
    ) -> Plan:
        return self._plan("Alltoall", info, sendbuf, recvbuf)

    def Gatherv_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecV | None,
        root: int = 0,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Gatherv", info, sendbuf, recvbuf, root)

    def Scatterv_init(
        self,
        sendbuf: BufSpecV | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Scatterv", info, sendbuf, recvbuf, root)

    def Allgatherv_init(
        self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecV, info: Info = MPI.INFO_NULL
    ) -> Plan:
        return self._plan("Allgatherv", info, sendbuf, recvbuf)

    def Alltoallv_init(
        self, sendbuf: BufSpecV | InPlace, recvbuf: BufSpecV, info: Info = MPI.INFO_NULL
    ) -> Plan:
        return self._plan("Alltoallv", info, sendbuf, recvbuf)

    def Reduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Reduce", info, sendbuf, recvbuf, op, root)

    def Allreduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Allreduce", info, sendbuf, recvbuf, op)

    def Reduce_scatter_block_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Reduce_scatter_block", info, sendbuf, recvbuf, op)

    def Reduce_scatter_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        recvcounts: Any = None,
        op: MPI.Op = MPI.SUM,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Reduce_scatter", info, sendbuf, recvbuf, recvcounts, op)

    def Scan_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Scan", info, sendbuf, recvbuf, op)

    def Exscan_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: Info = MPI.INFO_NULL,
    ) -> Plan:
        return self._plan("Exscan", info, sendbuf, recvbuf, op)

    def _plan(self, name: str, info: Info, *arguments: Any) -> Plan:
        """A plan of the collective `name`.

        Args:
            info: MPI's hints.
            arguments: mpi4py's, all of them in their order.
        """
        return Plan(getattr(MPI.Intracomm, f"{name}_init")(self, *arguments, info))
