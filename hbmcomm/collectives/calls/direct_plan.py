"""Plans that the core runs: arguments are read once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mpi4py import MPI

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.calls.plan import ACTIVE, Plan
from hbmcomm.collectives.calls.requests import Owner
from hbmcomm.collectives.core.native import ffi, lib
from hbmcomm.errors import HbmcommError

_run = lib.hbm_run_plan
_start, _wait, _test = lib.hbm_start_plan, lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING, _UNREADABLE, _LAST = lib.HBM_PENDING, lib.HBM_UNREADABLE, lib.HBM_LAST_STATUS
_NULL = ffi.NULL
_COMPLETE = -1
"""Instead of an operation's number: the plan was started slowly, and was complete at once."""


class DirectPlan(Plan):
    """The result of the `*_init` calls of transport `direct`.

    `plan()` is faster than `Start` and `Wait`, which do the same. A started operation progresses in
    any later wait, of the library or of MPI, and `Test` never blocks. A started plan may be waited
    for among other requests (`Waitall`); only its own `Start` starts it, not
    `MPI.Prequest.Startall`.
    """

    # access to slots is faster than to a dict
    __slots__ = ("_address", "_call", "_core", "_operation", "_owner", "_plan", "_quick", "_read")
    _owner: Owner
    _core: Any
    _call: Call
    _read: Callable[[], Call]
    _operation: int
    """The core's number of the operation in flight; 0: none; or `_COMPLETE`."""
    _plan: Any
    """The core's `hbm_plan`."""
    _address: int
    """Of the core's plan; 0 where its data must be packed before each run."""
    _quick: int
    """The same while the plan is inactive; 0 while it is active, so that no run is quick."""

    @classmethod
    def of(cls, owner: Owner, core: Any, call: Call, read: Callable[[], Call]) -> DirectPlan:
        """A new plan; `read` builds its call again, where data is packed for one run."""
        plan: DirectPlan = MPI.Prequest.__new__(cls)
        plan._owner, plan._core, plan._call, plan._read = owner, core, call, read
        plan._plan = ffi.new("hbm_plan *", {"comm": core, "call": call.call})
        plan._operation = 0
        plan._address = 0 if call.packs else int(ffi.cast("uintptr_t", plan._plan))
        plan._quick = plan._address
        return plan

    def __call__(self) -> None:
        status = _run(self._quick)
        if status:
            self._run_slowly(status)

    def _run_slowly(self, status: int) -> None:
        """Pack the data and run, or raise the error of a run or of an active plan."""
        if status == _UNREADABLE:
            self.Start()
            self.Wait()
        else:
            self._owner._check(status)

    def Start(self) -> None:
        """Begin the collective: do not use its buffers until it is complete.

        Raises:
            HbmcommError: The plan is active: it was started, and `Wait` or `Test` has not
                completed it. So on every rank, whether its operation is in flight or complete.
        """
        found = _start(self._quick, id(self))
        if found == _UNREADABLE:  # as that of an active plan
            found = self._start_slowly()
        if found > _LAST:
            self._operation = found
            _started[found] = self
        elif found:
            self._owner._check(found)
        self._quick = 0

    def _check_inactive(self) -> None:
        """Raise unless MPI's own Waitall or the like completed the plan and freed its handle."""
        # a thread that may not call MPI gave the plan no handle
        has_handle = lib.hbm_serves_requests() and (
            MPI.Query_thread() > MPI.THREAD_FUNNELED or MPI.Is_thread_main()
        )
        if self != MPI.REQUEST_NULL or not has_handle or not self.Test():
            raise self._owner._reported(HbmcommError(ACTIVE))

    def _start_slowly(self) -> int:
        """Start where data must be packed, or MPI cannot wait for operations of the core.

        Raises:
            HbmcommError: The plan is active, or was freed.
        """
        if self._operation or self._quick != self._address:
            self._check_inactive()
            found = int(_start(self._quick, id(self)))
            if found != _UNREADABLE:
                return found
        if self._core is _NULL:
            raise self._owner._reported(
                HbmcommError("this plan was freed; make a new one with the *_init call")
            )
        if self._call.packs:
            self._call = self._read()
        request = id(self) if lib.hbm_serves_requests() else 0
        found = int(lib.hbm_start_once(self._core, self._call.call, request))
        if not found:
            self._operation = _COMPLETE
        return found

    def Wait(self, status: MPI.Status | None = None) -> Literal[True]:
        """Block until the collective is complete; return at once if it is not started."""
        if not self._operation:
            self._quick = self._address
            _take_back(id(self))
        elif self._operation > 0:
            self._end(_wait(self._operation, id(self)))
        else:
            self._operation, self._quick = 0, self._address
            _take_back(id(self))
        return True

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the collective is complete; never blocks."""
        if self._operation <= 0:
            self._operation, self._quick = 0, self._address
            _take_back(id(self))
            return True
        found = _test(self._operation, id(self))
        if found != _PENDING:
            self._end(found)
        return bool(found != _PENDING)

    def Free(self) -> None:
        """Release the buffers."""
        if not self.Test():
            raise self._owner._reported(
                HbmcommError("this plan is started; call Wait() before Free()")
            )
        self._core, self._address, self._quick = _NULL, 0, 0
        self._call = Call(_NULL, (), False)

    def _end(self, status: int) -> None:
        """End a started run; with HBM_PENDING a signal handler interrupted it and it goes on."""
        if status != _PENDING:
            if status:
                lib.hbm_drop_once(self._operation)
            _started.pop(self._operation, None)
            self._operation, self._quick = 0, self._address
        if status:
            self._owner._check(status)


_started: dict[int, DirectPlan] = {}
"""Plans in flight by the numbers of their operations: keeps their buffers alive."""
