"""Plans: what the `*_init` calls of a communicator return, and those of transport `direct`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Never

from mpi4py import MPI

from hbmcomm.errors import HbmcommError
from hbmcomm.transports.call import Call
from hbmcomm.transports.native import ffi, lib
from hbmcomm.transports.requests import Owner, in_flight

ACTIVE = (
    "this plan is active: it was started, and its run has not been completed by Wait() or Test(); "
    "call Wait() before you start it again"
)
"""The text of the error of a second start."""
FREED = "this communicator was freed; call Free() after its last use, or make another one"
"""The text of the error of a call that only hbmcomm can refuse; MPI refuses others itself."""
_UNREADABLE_NOW = (
    "this plan cannot read its buffers any more; free their datatype after the last run, not before"
)


class Plan(MPI.Prequest):
    """A persistent collective: created once, run as often as needed.

    `plan()` runs it from beginning to end. `Start`, which does not block, and later `Wait` or
    `Test` are MPI's calls for the same. A plan keeps its buffers alive until `Free`. A second
    `Start` raises HbmcommError until `Wait` or `Test` has completed the plan.
    """

    __slots__ = ()
    _quick = 0
    """Address of the core's plan, where the core can start it without a line of Python."""

    def __call__(self) -> None:
        """Run the collective from beginning to end."""
        self.Start()
        self.Wait()

    def _starting(self, _status: int) -> tuple[Any, ...]:
        """What `Start` starts where no transport has more to say: MPI's own request."""
        return None, partial(MPI.Prequest.Start, self)


def _put_start() -> None:
    """Give plans their Start: a method of the core, which asks `_starting` what to start.

    Raises:
        ImportError: mpi4py's function does not show its signature.
    """
    if not lib.hbm_add_method(id(Plan), id(MPI.Prequest.Start), -1, id(None), id(None)):
        raise ImportError("hbmcomm cannot read the signature of mpi4py's Prequest.Start")


_put_start()


_run = lib.hbm_run_plan
_wait, _test = lib.hbm_wait_once, lib.hbm_test_once
_take_back = lib.hbm_take_back_request
_PENDING, _UNREADABLE = lib.HBM_PENDING, lib.HBM_UNREADABLE
_NULL = ffi.NULL


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
    _read: Callable[[], Any]
    _operation: int
    """The core's number of the operation in flight; 0: none; -1: one that was started slowly, and
    was complete at once."""
    _plan: Any
    """The core's `hbm_plan`."""
    _address: int
    """Of the core's plan; 0 where its data must be packed before each run."""
    _quick: int
    """The same while the plan is inactive; 0 while it is active, so that no run is quick."""

    @classmethod
    def of(cls, owner: Owner, core: Any, call: Call, read: Callable[[], Any]) -> DirectPlan:
        """A new plan; `read` builds its call again, where data is packed for one run.

        It returns something else than a `Call` where that is not possible any more.
        """
        plan: DirectPlan = MPI.Prequest.__new__(cls)
        plan._owner, plan._core, plan._call, plan._read = owner, core, call, read
        plan._plan = ffi.new("hbm_plan *", {"comm": core, "call": call.call})
        plan._operation = 0
        plan._address = 0 if call.packs else int(ffi.cast("uintptr_t", plan._plan))
        plan._quick = plan._address
        return plan

    def __bool__(self) -> bool:
        """Whether it is not freed, as in mpi4py; MPI's handle is null while it is inactive."""
        return self._core is not _NULL

    def __eq__(self, other: object) -> bool:
        if self and self._has_no_handle():
            return self is other
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # as mpi4py's

    def _has_no_handle(self) -> bool:
        return bool(MPI.Prequest.__eq__(self, MPI.REQUEST_NULL))

    def __reduce__(self) -> Never:
        """Refused, as mpi4py does for its own: a copy would have no collective."""
        raise ValueError(f"cannot serialize {type(self).__name__!r} instance")

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

    def _starting(self, status: int) -> tuple[Any, ...]:
        """What `Start` starts that the core could not start at once; see methods.c.

        Raises:
            HbmcommError: The plan is active, or was freed, or its communicator has failed.
        """
        if status != _UNREADABLE:
            self._owner._check(status)
        if self._operation or self._quick != self._address:
            self._check_inactive()
        if self._core is _NULL:
            raise self._owner._reported(
                HbmcommError("this plan was freed; make a new one with the *_init call")
            )
        if self._call.packs:
            call = self._read()
            if not isinstance(call, Call):
                freed = self._owner == MPI.COMM_NULL
                raise self._owner._reported(HbmcommError(FREED if freed else _UNREADABLE_NOW))
            self._call, self._plan.call = call, call.call
        return int(ffi.cast("uintptr_t", self._plan)), self

    def _check_inactive(self) -> None:
        """Raise unless MPI's own Waitall or the like completed the plan and freed its handle."""
        if self._operation > 0:
            is_over = bool(lib.hbm_is_over(self._operation))
        else:  # a thread that may not call MPI gave the plan no handle
            is_over = MPI.Query_thread() > MPI.THREAD_FUNNELED or MPI.Is_thread_main()
        if not self._has_no_handle() or not is_over or not self.Test():
            raise self._owner._reported(HbmcommError(ACTIVE))

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
        return True if status is None else _emptied(status)

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Whether the collective is complete; never blocks."""
        if self._operation <= 0:
            self._operation, self._quick = 0, self._address
            _take_back(id(self))
        else:
            code = _test(self._operation, id(self))
            if code == _PENDING:
                return False
            self._end(code)
        return True if status is None else _emptied(status)

    def Free(self) -> None:
        """Release the buffers."""
        if not self.Test():
            raise self._owner._reported(
                HbmcommError("this plan is started; call Wait() before Free()")
            )
        self._core, self._address, self._quick = _NULL, 0, 0
        self._call, self._read = Call(_NULL, (), False), tuple  # both held the buffers

    def _end(self, status: int) -> None:
        """End a started run; with HBM_PENDING a signal handler interrupted it and it goes on."""
        if status != _PENDING:
            if status:
                lib.hbm_drop_once(self._operation)
            in_flight.pop(self._operation, None)
            self._operation, self._quick = 0, self._address
        if status:
            self._owner._check(status)


def _emptied(status: MPI.Status) -> Literal[True]:
    """True, once the status says what that of a null request does."""
    return MPI.Request().Wait(status)
