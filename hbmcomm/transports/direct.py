"""Transport `direct`: the C core moves the data through memory that all ranks map.

Its collectives are methods in C, which read plain NumPy arrays as they are. This file holds what
those methods leave to Python: other buffer forms, nonblocking and persistent calls; objects.py has
calls of Python objects. Calls that only MPI can do go to mpi4py unchanged; the core notes them, so
that a rank that waits in the core hears of one that made another call. Nonblocking calls also stay
MPI's where MPI neither polls other libraries nor supports calls of several threads.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm.errors import HbmcommError
from hbmcomm.memory import arrays, dax_arena
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import Kind, resolve
from hbmcomm.transports import mpi_progress, objects
from hbmcomm.transports.arguments import READ, Operands, Unequal, Unserved
from hbmcomm.transports.call import Call, build_call, with_copied_input
from hbmcomm.transports.message import Unreadable
from hbmcomm.transports.native import (
    FOREIGN_NUMBERS,
    OPERATIONS,
    REDUCTIONS,
    Core,
    ffi,
    lib,
)
from hbmcomm.transports.objects import Objects
from hbmcomm.transports.opening import open_core
from hbmcomm.transports.operand import register
from hbmcomm.transports.plans import FREED, DirectPlan, Plan
from hbmcomm.transports.requests import Request
from hbmcomm.transports.transport import Neighbours, Transport

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
        register()
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
            raise self._reported(self._error(status))
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
            if any(_is_elsewhere(argument) for argument in arguments):
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
        again = map(_as_given, arguments) if call.packs else arguments
        return DirectPlan.of(self, self._core, call, partial(self._read, status, name, *again))

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


def _as_given(spec: Any) -> Any:
    """A buffer's specification whose counts are not the program's, which may change them."""
    if not isinstance(spec, list | tuple):
        return spec
    buffer, *others = spec
    own = (deepcopy(it) if isinstance(it, list | tuple | np.ndarray) else it for it in others)
    return [buffer, *own]


def _is_elsewhere(spec: Any) -> bool:
    """Whether MPI may be able to use this buffer although its memory cannot be read here."""
    buffer = spec[0] if isinstance(spec, list | tuple) and spec else spec
    return buffer is MPI.BOTTOM or hasattr(buffer, "__cuda_array_interface__")


class Nonblocking(DirectBase):
    """The part of MPI's `I*` calls that needs Python; `direct` has the rest, which starts them."""

    def _starting(self, status: int, name: str, *arguments: Any) -> tuple[Any, ...]:
        """How to start a call that the core could not start; see methods.c.

        The arguments are those of `_again`. Nothing has started when this raises.
        """
        if not mpi_progress.serves_requests():
            return self._mpi_starts(name, *arguments)
        call = self._read(status, name, *arguments)
        if not isinstance(call, Call):
            return self._mpi_starts(name, *arguments)
        plan = ffi.new("hbm_plan *", {"comm": self._core, "call": call.call})
        return int(ffi.cast("uintptr_t", plan)), (self, call, plan)

    def _mpi_starts(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        return None, partial(getattr(MPI.Intracomm, f"I{name.lower()}"), self, *arguments)


class Direct(Objects, Nonblocking, DirectBase):
    """The collectives of the C core; arguments, results and errors as in mpi4py."""

    def Alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        self._announce("Alltoallw")
        super().Alltoallw(sendbuf, recvbuf)


def _put_methods() -> None:
    """Give the class its collectives: methods of the core with the signatures of mpi4py's.

    Raises:
        ImportError: mpi4py's functions do not show their signatures.
    """
    lib.hbm_reductions([id(getattr(MPI, name)) for name in REDUCTIONS], len(REDUCTIONS))
    for code, name in enumerate(OPERATIONS):
        methods = {name: None, f"I{name.lower()}": Request}
        if name == "Barrier":
            methods["barrier"] = None
        for method, request in methods.items():
            theirs = getattr(MPI.Intracomm, method)
            if not lib.hbm_add_method(id(Direct), id(theirs), code, id(name), id(request)):
                raise ImportError(f"hbmcomm cannot read the signature of mpi4py's {method}")
    objects.put_calls(Direct)


_put_methods()
