"""The slow path of transport `direct`: begin, leave, and calls that need Python before the core.

It reads mpi4py's other buffer forms. Calls that only MPI can do go to mpi4py unchanged; the core
notes them, so that a rank that waits in the core hears of one that made another call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from mpi4py import MPI

from hbmcomm.collectives.buffers.arguments import READ, Operands, Unequal, Unserved
from hbmcomm.collectives.buffers.message import Unreadable
from hbmcomm.collectives.calls.call import Call, build_call, with_copied_input
from hbmcomm.collectives.calls.direct_plan import DirectPlan
from hbmcomm.collectives.calls.plan import FREED, Plan
from hbmcomm.collectives.core import mpi_progress, numpy_arrays
from hbmcomm.collectives.core.native import FOREIGN_NUMBERS, Core, ffi, lib
from hbmcomm.collectives.core.opening import open_core
from hbmcomm.collectives.transports.transport import Neighbours, Transport
from hbmcomm.errors import HbmcommError
from hbmcomm.memory.dax import dax_arena
from hbmcomm.memory.policy.kinds import Kind, resolve
from hbmcomm.memory.private import arrays
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.arena_creation import create_arena

_run = lib.hbm_run
_UNREADABLE, _COPY_FIRST, _UNSERVED = lib.HBM_UNREADABLE, lib.HBM_COPY_FIRST, lib.HBM_UNSERVED
_REFUSED = (_COPY_FIRST, _UNSERVED)

_GONE = (lib.HBM_OK, lib.HBM_CLOSED, lib.HBM_PEER_DIED)
"""Statuses that a leaving rank may see: all ranks are present, or some have gone before."""


class DirectBase(Transport):
    """A communicator with a state in the core."""

    _core: Any = ffi.NULL
    _handle: int = 0
    """The address of _core, for methods in C."""
    _state: Core | None = None
    _arena: Arena | None = None

    def Free(self) -> None:
        self._leave()
        super().Free()

    def Disconnect(self) -> None:
        self._leave()
        super().Disconnect()

    # ---- beginning and end ----

    def _begin(self) -> None:
        mpi_progress.join()
        numpy_arrays.register()
        create = partial(create_arena, kind=partial(resolve, self.kind, self.nodes))
        if self.device is not None:
            create = partial(dax_arena.create_arena, path=self.device)
        opened = open_core(create, super().allgather, self.rank, range(self.size))
        self._state, self._arena = opened
        self._core = self._state.handle
        self._handle = int(ffi.cast("uintptr_t", self._core))

    def _neighbours(self) -> Neighbours | None:
        if self._state is None or self._arena is None:
            return None
        return Neighbours(tuple(range(self.size)), self._state, self._arena)

    def _array_factory(self) -> arrays.ArrayFactory:
        if self._arena is None:  # it was freed
            return super()._array_factory()
        return arrays.ArrayFactory(self._arena.kind, self._arena.allocate, self._arena.holds)

    def _numpy_memory(self) -> AbstractContextManager[Kind]:
        return super()._numpy_memory() if self._arena is None else self._arena.numpy_memory()

    def _leave(self) -> None:
        """Close the core's state; the arrays keep the arena."""
        state = self._state
        if state is None:
            return
        failed = lib.hbm_failure_of(self._core, ffi.new("hbm_failure *"))
        status = failed or lib.hbm_barrier(self._core)
        if status == lib.HBM_BUSY:
            raise self._reported(state.error(status))
        error = state.error(status) if status not in (failed, *_GONE) else None
        self._state, self._core, self._handle, self._arena = None, ffi.NULL, 0, None
        state.close()
        if error is not None:
            raise self._reported(error)

    def _abandon(self) -> None:
        if self._state is not None:
            self._state.close()

    # ---- slow path ----

    def _again(self, status: int, name: str, *arguments: Any) -> None:
        """Do a call that the core did not do: raise its error, or read the arguments in Python.

        `arguments` are mpi4py's, all of them in their order.
        """
        call = self._read(status, name, *arguments)
        if isinstance(call, Call):
            status = _run(self._core, call.call)
            if status in _REFUSED:
                call = self._read(status, name, *arguments)
                if isinstance(call, Call):
                    status = _run(self._core, call.call)
        if isinstance(call, Call):
            self._check(status)
        else:
            call()

    def _read(self, status: int, name: str, *arguments: Any) -> Any:
        """A call in the core's form; where MPI must do the call, a function that makes it.

        Args:
            status: The core's status; HBM_COPY_FIRST: the sent data must be copied, because it
                overlaps the received data; HBM_UNSERVED: MPI must do the call.
        """
        operands = self._operands(status, name, *arguments)
        return build_call(name, operands) if isinstance(operands, Operands) else operands

    def _operands(self, status: int, name: str, *arguments: Any) -> Any:
        """The operands of a call, or a function that makes it; see `_read`."""
        if status not in (_UNREADABLE, *_REFUSED) and self._state is not None:
            raise self._reported(self._state.error(status))
        through_mpi = partial(getattr(MPI.Intracomm, name), self, *arguments)
        if self._state is None:
            return through_mpi  # raises the error: it was freed, or is COMM_NULL
        if status == _UNSERVED:
            return partial(self._through_mpi, name, through_mpi)
        try:
            operands = READ[name](self, *arguments)
        except Unserved as unserved:
            meet = isinstance(unserved, Unequal)
            return partial(self._through_mpi, name, through_mpi, meet)
        except (Unreadable, TypeError):
            if any(_is_elsewhere(each) for each in arguments):
                return partial(self._through_mpi, name, through_mpi)
            return through_mpi
        if status == _COPY_FIRST:
            operands = with_copied_input(name, operands, self.size)
        return operands

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        """A plan of the core; MPI's where only MPI can do the collective, or wait for it."""
        status = _UNREADABLE
        if not mpi_progress.serves_requests():
            return super()._plan(name, info, *arguments)
        call = self._read(status, name, *arguments)
        if isinstance(call, Call) and (refused := lib.hbm_check(self._core, call.call)):
            status = refused
            call = self._read(status, name, *arguments)
        if not isinstance(call, Call):
            return super()._plan(name, info, *arguments)
        return DirectPlan.of(self, self._core, call, partial(self._read, status, name, *arguments))

    def _through_mpi(self, name: str, call: Callable[[], Any], meet: bool = False) -> Any:
        """MPI's own call, once the core has noted it."""
        self._announce(name, meet)
        return call()

    def _announce(self, name: str, meet: bool = False) -> None:
        """Note a call of MPI, which waits for nobody; with HBMCOMM_CHECK_CALLS=1 all ranks meet.

        Args:
            meet: All ranks meet in any case: no rank goes into MPI while others are in the core.
        """
        if self._state is None:
            return
        if meet:
            call = ffi.new("hbm_call *", {"operation": FOREIGN_NUMBERS[name]})
            self._check(_run(self._core, call))
        else:
            self._check(lib.hbm_note(self._core, FOREIGN_NUMBERS[name]))

    def _check(self, status: int) -> None:
        if status:
            raise self._reported(self._error(status))

    def _error(self, status: int) -> BaseException:
        """What a status that is not 0 means."""
        if self._state is None:
            return HbmcommError(FREED)
        return self._state.error(status)


def _is_elsewhere(spec: Any) -> bool:
    """Whether MPI may be able to use this buffer although its memory cannot be read here."""
    buffer = spec[0] if isinstance(spec, list | tuple) and spec else spec
    return buffer is MPI.BOTTOM or hasattr(buffer, "__cuda_array_interface__")
