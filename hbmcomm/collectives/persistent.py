"""The persistent forms of transport `direct`: arguments read once, the collective run many times.

Each call returns a `Plan`. Knows which arguments each takes; what becomes of them is `direct`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, InPlace

from hbmcomm.collectives import arguments
from hbmcomm.collectives.arguments import Operands
from hbmcomm.collectives.transport import Transport


class Persistent(Transport):
    """MPI's `*_init` calls by way of one `_plan`."""

    def _plan(
        self, name: str, operands: Callable[[], Operands], *buffers: Any, **others: Any
    ) -> Any:
        """The plan of a call: what reads its operands, and mpi4py's arguments."""
        raise NotImplementedError

    def Barrier_init(self, info: MPI.Info = MPI.INFO_NULL) -> Any:
        return self._plan("Barrier", lambda: (None, None))

    def Bcast_init(self, buf: BufSpec, root: int = 0, info: MPI.Info = MPI.INFO_NULL) -> Any:
        return self._plan("Bcast", lambda: arguments.bcast(self, buf, root), buf, root=root)

    def Gather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB | None,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        def operands() -> Operands:
            return arguments.gather(self, sendbuf, recvbuf, root)

        return self._plan("Gather", operands, sendbuf, recvbuf, root=root)

    def Scatter_init(
        self,
        sendbuf: BufSpecB | None,
        recvbuf: BufSpec | InPlace,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        def operands() -> Operands:
            return arguments.scatter(self, sendbuf, recvbuf, root)

        return self._plan("Scatter", operands, sendbuf, recvbuf, root=root)

    def Allgather_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        return self._plan(
            "Allgather", lambda: arguments.allgather(self, sendbuf, recvbuf), *(sendbuf, recvbuf)
        )

    def Alltoall_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpecB,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        return self._plan(
            "Alltoall", lambda: arguments.alltoall(self, sendbuf, recvbuf), *(sendbuf, recvbuf)
        )

    def Reduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        taken = recvbuf if root == self.rank else None

        def operands() -> Operands:
            return arguments.reduction(sendbuf, taken, op)

        return self._plan("Reduce", operands, sendbuf, recvbuf, op=op, root=root)

    def Allreduce_init(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        def operands() -> Operands:
            return arguments.reduction(sendbuf, recvbuf, op)

        return self._plan("Allreduce", operands, sendbuf, recvbuf, op=op)

    def Reduce_scatter_block_init(
        self,
        sendbuf: BufSpecB | InPlace,
        recvbuf: BufSpec | BufSpecB,
        op: MPI.Op = MPI.SUM,
        info: MPI.Info = MPI.INFO_NULL,
    ) -> Any:
        def operands() -> Operands:
            return arguments.reduce_scatter(self, sendbuf, recvbuf, op)

        return self._plan("Reduce_scatter_block", operands, sendbuf, recvbuf, op=op)
