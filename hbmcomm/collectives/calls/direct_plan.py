"""Plans that the core runs: arguments are read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mpi4py import MPI

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.calls.plan import Plan
from hbmcomm.collectives.calls.requests import Owner
from hbmcomm.collectives.core.native import ffi, lib
from hbmcomm.errors import HbmcommError

_run = lib.hbm_run_plan
_start, _wait, _test = lib.hbm_start_plan, lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING, _UNREADABLE, _LAST = lib.HBM_PENDING, lib.HBM_UNREADABLE, lib.HBM_LAST_STATUS
_NULL = ffi.NULL


class DirectPlan(Plan):
    """What the `*_init` calls of transport `direct` return.

    `plan()` is quicker than `Start` and `Wait`, which do the same: the operation goes on in any
    later wait, here or in MPI, and `Test` never blocks. A started plan may be waited for among
    other requests (`Waitall`); it is started by its own `Start` alone, not by
    `MPI.Prequest.Startall`.
    """

    __slots__ = ("_call", "_core", "_made", "_operation", "_owner", "_quick", "_read")
    # which are found quicker than in a dict
    _owner: Owner
    _core: Any
    _call: Call
    _read: Callable[[], Call]
    _operation: int
    """The core's number of it, while it is in flight; else 0."""
    _made: Any
    """The core's `hbm_plan`."""
    _quick: int
    """Its address; 0 where there is more to do than to run it."""

    @classmethod
    def of(cls, owner: Owner, core: Any, call: Call, read: Callable[[], Call]) -> DirectPlan:
        """A new plan.

        Args:
            owner: The communicator.
            core: Its state in the core.
            call: What is to be run.
            read: Makes the call anew, for one whose data was packed for one run.
        """
        made: DirectPlan = MPI.Prequest.__new__(cls)
        made._owner, made._core, made._call, made._read = owner, core, call, read
        made._made = ffi.new("hbm_plan *", {"comm": core, "call": call.call})
        made._operation = 0
        made._quick = 0 if call.packs else int(ffi.cast("uintptr_t", made._made))
        return made

    def __call__(self) -> None:
        """Run the collective from beginning to end."""
        status = _run(self._quick)
        if status:
            self._run_slowly(status)

    def _run_slowly(self, status: int) -> None:
        """Where data must be packed first, or the run failed."""
        if status == _UNREADABLE:
            self.Start()
            self.Wait()
        else:
            self._owner._check(status)

    def Start(self) -> None:
        """Begin the collective: its buffers must not be touched until it is complete."""
        if self._operation and not self.Test():
            raise HbmcommError("this plan was started and is not complete; Wait() first")
        found = _start(self._quick, id(self))
        if found == _UNREADABLE:
            found = self._start_slowly()
        if found > _LAST:
            self._operation = found
            _started[found] = self
        elif found:
            self._owner._check(found)

    def _start_slowly(self) -> int:
        """Where data must be packed first, or MPI cannot wait for operations of the core."""
        if self._core is _NULL:
            raise HbmcommError("this plan was freed; make a new one with the *_init call")
        if self._call.packs:
            self._call = self._read()
        request = id(self) if lib.hbm_serves_requests() else 0
        return int(lib.hbm_start_once(self._core, self._call.call, request))

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the collective is complete; at once if it was not started."""
        if self._operation:
            self._end(_wait(self._operation, id(self)))
        else:
            _take_back(id(self))
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the collective is complete; never blocks."""
        if not self._operation:
            _take_back(id(self))
            return True
        found = _test(self._operation, id(self))
        if found != _PENDING:
            self._end(found)
        return bool(found != _PENDING)

    def Free(self) -> None:
        """Let go of the buffers."""
        if not self.Test():
            raise HbmcommError("this plan is started; Wait() before Free()")
        self._core, self._quick, self._call = _NULL, 0, Call(_NULL, (), False)

    def _end(self, status: int) -> None:
        """What was started is complete, unless a signal's handler wants out of the wait."""
        if status != _PENDING:
            if status:
                lib.hbm_drop_once(self._operation)
            _started.pop(self._operation, None)
            self._operation = 0
        if status:
            self._owner._check(status)


_started: dict[int, DirectPlan] = {}
"""Those that are in flight, by the numbers of their operations: keeps their buffers."""
