"""Transport `direct`: the C core moves the data through memory that all ranks map.

The first line of each call hands plain NumPy arrays to the core as they are. What the core cannot
read goes the longer way: mpi4py's other buffer forms are read here, and what only MPI can do is
mpi4py's unchanged, once all ranks have agreed that they call the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpi4py import MPI
from mpi4py.typing import BufSpec, BufSpecB, InPlace

from hbmcomm.collectives import arguments
from hbmcomm.collectives.arguments import Operands, Unserved, reduction_code
from hbmcomm.collectives.core import FOREIGN, OPERATIONS, REDUCTIONS, Core, ffi, lib, setting
from hbmcomm.collectives.message import Unreadable
from hbmcomm.collectives.operand import Operand
from hbmcomm.collectives.persistent import Persistent
from hbmcomm.collectives.plan import Plan
from hbmcomm.errors import HbmcommError, KindUnavailable
from hbmcomm.memory import arena, arrays, dax_arena
from hbmcomm.memory.kinds import resolve

_barrier, _bcast, _blocks, _fold, _run = (
    *(lib.hbm_barrier, lib.hbm_bcast, lib.hbm_blocks, lib.hbm_fold, lib.hbm_run),
)
_GATHER, _SCATTER, _ALLGATHER, _ALLTOALL = (
    *(lib.HBM_GATHER, lib.HBM_SCATTER, lib.HBM_ALLGATHER, lib.HBM_ALLTOALL),
)
_REDUCE, _ALLREDUCE = lib.HBM_REDUCE, lib.HBM_ALLREDUCE
_REDUCE_SCATTER_BLOCK = lib.HBM_REDUCE_SCATTER_BLOCK

_GONE = (lib.HBM_OK, lib.HBM_CLOSED, lib.HBM_PEER_DIED)
"""What a rank may find when it leaves: all here, or some gone before."""

_OPS = {id(getattr(MPI, name)): code for code, name in enumerate(REDUCTIONS)}
_code = _OPS.get


@dataclass(frozen=True)
class Ready:
    """A call in the core's form, and what keeps its memory."""

    comm: Direct
    call: Any
    send: Operand | None
    recv: Operand | None

    @property
    def packs(self) -> bool:
        """Whether its data was copied for this one time."""
        return any(each is not None and each.packed is not None for each in (self.send, self.recv))

    def __call__(self) -> None:
        self.comm._check(_run(self.comm._core, self.call))
        if self.recv is not None:
            self.recv.finish()


class Direct(Persistent):
    """The collectives of the C core; arguments, results and errors as in mpi4py."""

    _core: Any = ffi.NULL
    _state: Core | None = None
    _arena: arena.Arena | None = None
    _started: deque[Plan]

    def Barrier(self) -> None:
        status = _barrier(self._core)
        if status:
            self._again(status, "Barrier", lambda: (None, None))

    def Bcast(self, buf: BufSpec, root: int = 0) -> None:
        status = _bcast(self._core, id(buf), root)
        if status:
            self._again(status, "Bcast", lambda: arguments.bcast(self, buf, root), buf, root=root)

    def Gather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB | None, root: int = 0) -> None:
        status = _blocks(self._core, _GATHER, id(sendbuf), id(recvbuf), root)
        if status:
            self._again(
                *(status, "Gather", lambda: arguments.gather(self, sendbuf, recvbuf, root)),
                *(sendbuf, recvbuf),
                root=root,
            )

    def Scatter(self, sendbuf: BufSpecB | None, recvbuf: BufSpec | InPlace, root: int = 0) -> None:
        status = _blocks(self._core, _SCATTER, id(sendbuf), id(recvbuf), root)
        if status:
            self._again(
                *(status, "Scatter", lambda: arguments.scatter(self, sendbuf, recvbuf, root)),
                *(sendbuf, recvbuf),
                root=root,
            )

    def Allgather(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpecB) -> None:
        status = _blocks(self._core, _ALLGATHER, id(sendbuf), id(recvbuf), 0)
        if status:
            self._again(
                *(status, "Allgather", lambda: arguments.allgather(self, sendbuf, recvbuf)),
                *(sendbuf, recvbuf),
            )

    def Alltoall(self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpecB) -> None:
        status = _blocks(self._core, _ALLTOALL, id(sendbuf), id(recvbuf), 0)
        if status:
            self._again(
                *(status, "Alltoall", lambda: arguments.alltoall(self, sendbuf, recvbuf)),
                *(sendbuf, recvbuf),
            )

    def Reduce(
        self,
        sendbuf: BufSpec | InPlace,
        recvbuf: BufSpec | None,
        op: MPI.Op = MPI.SUM,
        root: int = 0,
    ) -> None:
        status = _fold(self._core, _REDUCE, id(sendbuf), id(recvbuf), _code(id(op), -1), root)
        if status:
            taken = recvbuf if root == self.rank else None
            self._again(
                *(status, "Reduce", lambda: arguments.reduction(sendbuf, taken, op)),
                *(sendbuf, recvbuf),
                op=op,
                root=root,
            )

    def Allreduce(self, sendbuf: BufSpec | InPlace, recvbuf: BufSpec, op: MPI.Op = MPI.SUM) -> None:
        status = _fold(self._core, _ALLREDUCE, id(sendbuf), id(recvbuf), _code(id(op), -1), 0)
        if status:
            self._again(
                *(status, "Allreduce", lambda: arguments.reduction(sendbuf, recvbuf, op)),
                *(sendbuf, recvbuf),
                op=op,
            )

    def Reduce_scatter_block(
        self, sendbuf: BufSpecB | InPlace, recvbuf: BufSpec | BufSpecB, op: MPI.Op = MPI.SUM
    ) -> None:
        status = _fold(
            *(self._core, _REDUCE_SCATTER_BLOCK, id(sendbuf), id(recvbuf), _code(id(op), -1), 0)
        )
        if status:
            self._again(
                *(status, "Reduce_scatter_block"),
                lambda: arguments.reduce_scatter(self, sendbuf, recvbuf, op),
                *(sendbuf, recvbuf),
                op=op,
            )

    def Free(self) -> None:
        self._leave()
        super().Free()

    def Disconnect(self) -> None:
        self._leave()
        super().Disconnect()

    # ---- beginning and end ----

    def _begin(self) -> None:
        shared = self._new_arena(int(lib.hbm_heap_offset()))
        state = Core(shared, self.rank, super().allgather(setting()))
        self._arena, self._state, self._core = shared, state, state.handle
        self._started = deque()

    def _new_arena(self, reserved: int) -> arena.Arena:
        if self.device is not None:
            return dax_arena.make(super().allgather, self.rank, self.device, reserved)
        return arena.make(super().allgather, self.rank, resolve(self.kind, self.nodes), reserved)

    def _supply(self) -> arrays.Supply:
        if self._arena is None:  # made by Idup, which must not wait for others
            if self.device is not None:
                raise KindUnavailable(
                    f"device={self.device}: a communicator made by Idup has its part of the device "
                    "after its first collective call, and none once it is freed"
                )
            return super()._supply()
        return arrays.Supply(self._arena.kind, self._arena.allocate, self._arena.holds)

    def _leave(self) -> None:
        """End the core's part; the arrays keep the arena."""
        state = self._state
        if state is None:
            return
        failed = lib.hbm_failure_of(self._core, ffi.new("hbm_failure *"))
        status = failed or _barrier(self._core)
        if status == lib.HBM_BUSY:
            raise state.error(status)
        error = state.error(status) if status not in (failed, *_GONE) else None
        self._state, self._core, self._arena = None, ffi.NULL, None
        state.close()
        if error:
            raise error

    def _abandon(self) -> None:
        if self._state is not None:
            self._state.close()

    # ---- the longer way ----

    def _plan(
        self, name: str, operands: Callable[[], Operands], *buffers: Any, **others: Any
    ) -> Any:
        """A call whose arguments are read now; what must be packed is read anew each time."""
        run = self._prepared(lib.HBM_UNREADABLE, name, operands, *buffers, **others)
        if self._state is None:
            run()  # which says that the communicator is none
        if isinstance(run, Ready) and not run.packs:
            return Plan(self._core, run.call, self._check, self._started)
        again = partial(getattr(self, name), *buffers, **others)
        return Plan(self._core, ffi.NULL, lambda _: again(), self._started)

    def _again(
        self,
        status: int,
        name: str,
        operands: Callable[[], Operands],
        *buffers: Any,
        **others: Any,
    ) -> None:
        """A call that the core did not do: raise what stopped it, or prepare its arguments.

        Args:
            status: What the core said.
            name: The call.
            operands: Reads the buffers.
            buffers, others: mpi4py's arguments, in case that MPI must do it.
        """
        self._prepared(status, name, operands, *buffers, **others)()

    def _prepared(
        self,
        status: int,
        name: str,
        operands: Callable[[], Operands],
        *buffers: Any,
        **others: Any,
    ) -> Callable[[], None]:
        if status != lib.HBM_UNREADABLE and self._state is not None:
            raise self._state.error(status)
        through_mpi = partial(getattr(super(), name), *buffers, **others)
        if self._state is None:
            if self == MPI.COMM_NULL:
                return through_mpi  # which says so
            self._begin()
        root = others.get("root", 0)
        try:
            if not 0 <= root < self.size:
                return through_mpi
            send, recv = operands()
            call = _call(name, send, recv, reduction_code(others.get("op")), root)
        except Unserved:
            return partial(self._through_mpi, name, through_mpi)
        except (Unreadable, TypeError):
            if any(_lies_elsewhere(each) for each in buffers):
                return partial(self._through_mpi, name, through_mpi)
            return through_mpi
        return Ready(self, call, send, recv)

    def _through_mpi(self, name: str, call: Callable[[], Any]) -> Any:
        """MPI's own call, once all ranks are known to make it."""
        self._announce(name)
        return call()

    def _announce(self, name: str) -> None:
        if self._state is None:
            if self == MPI.COMM_NULL:
                return
            self._begin()
        operation = lib.HBM_FOREIGN + FOREIGN.index(name)
        self._check(_run(self._core, ffi.new("hbm_call *", {"operation": operation})))

    def _check(self, status: int) -> None:
        if status:
            if self._state is None:
                raise HbmcommError("this communicator was freed")
            raise self._state.error(status)


def _call(name: str, send: Operand | None, recv: Operand | None, reduction: int, root: int) -> Any:
    """The core's form of a call.

    Raises:
        Unserved: What is sent and what is received differ in length or type.
    """
    told = send or recv
    if send and recv and (send.entries, send.dtype) != (recv.entries, recv.dtype):
        raise Unserved
    return ffi.new(
        "hbm_call *",
        {
            "operation": OPERATIONS.index(name),
            "dtype": told.dtype if told else 0,
            "reduction": reduction,
            "root": root,
            "count": told.entries if told else 0,
            "send": send.address if send else 0,
            "recv": recv.address if recv else 0,
        },
    )


def _lies_elsewhere(spec: Any) -> bool:
    """Whether MPI may know what this buffer is though it is in no memory that can be read here."""
    buffer = spec[0] if isinstance(spec, list | tuple) and spec else spec
    return buffer is MPI.BOTTOM or hasattr(buffer, "__cuda_array_interface__")


def _announced(name: str) -> Callable[..., Any]:
    original = getattr(MPI.Intracomm, name)

    def call(self: Direct, *arguments: Any, **named: Any) -> Any:
        self._announce(name)
        return original(self, *arguments, **named)

    call.__name__, call.__doc__ = name, original.__doc__
    return call


for _name in FOREIGN:
    if _name not in OPERATIONS:
        setattr(Direct, _name, _announced(_name))
