"""Transport `hierarchical`: the core among ranks that can share memory, messages of MPI between.

Short calls on plain arrays go to `hierarchical/flat`. Every other call goes the slow path of
transport `direct`, which reads its arguments in Python, and then to `hierarchical/operations`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from mpi4py import MPI

from hbmcomm.errors import ArenaUnavailable, CallMismatch, HbmcommError, PeerError
from hbmcomm.hierarchical import flat, operations, watch
from hbmcomm.hierarchical.grouping import Layout, find_hosts
from hbmcomm.hierarchical.inside import Inside
from hbmcomm.hierarchical.links import Call
from hbmcomm.hierarchical.settings import settings
from hbmcomm.hierarchical.task import Task
from hbmcomm.hierarchical.threaded import Engine, Operation, Request, ThreadedPlan
from hbmcomm.hierarchical.ways import Ways
from hbmcomm.hierarchical.wire import Wire
from hbmcomm.memory import consensus
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve
from hbmcomm.transports import mpi_progress
from hbmcomm.transports.arguments import Operands
from hbmcomm.transports.call import with_copied_input
from hbmcomm.transports.direct import Direct
from hbmcomm.transports.native import FOREIGN_NUMBERS, OPERATIONS, ffi, lib, setting
from hbmcomm.transports.opening import open_core, open_on_all
from hbmcomm.transports.operand import register
from hbmcomm.transports.persistent import Persistent
from hbmcomm.transports.plans import FREED, Plan
from hbmcomm.transports.transport import Neighbours

_UNREADABLE, _COPY_FIRST = lib.HBM_UNREADABLE, lib.HBM_COPY_FIRST
_SOON = 1.0  # seconds
_PATIENT = {"spin_us": 0, "yield_us": 200}
"""Thresholds of the core: ranks wait for messages from other hosts, and leave their CPU to MPI. The
ranks of a host are soon there, so they need not sleep."""


class Hierarchical(Direct):
    """Ranks of one host have a state in the core; this class never has one of all ranks."""

    _options: Any
    _engine: Engine
    _ways: Ways | None = None
    _watch: watch.Watch | None = None
    _broken: BaseException | None = None

    # ---- beginning and end ----

    def _begin(self) -> None:
        mpi_progress.join()
        register()
        own, rank = MPI.Intracomm(self), self.rank
        hosts = find_hosts(own.allgather, rank)
        if len(self._options.transports) > 1 and len(hosts) in (1, self.size):
            raise ArenaUnavailable(
                f"auto takes hierarchical where some ranks share memory and others do not; found "
                f"{self.size} ranks on {len(hosts)} hosts; name a transport"
            )
        asked = consensus.run_on_all(own.allgather, lambda: (settings(), setting().place.node))
        chosen, nodes = asked[0][0], dict(enumerate(node for _, node in asked))
        on_each = [len({nodes[each] for each in ranks}) for ranks in hosts]
        layout = Layout(hosts, rank, chosen.leaders or min(on_each), nodes)
        among = MPI.Intracomm(own.Split(layout.host, rank))
        create = partial(create_arena, kind=partial(resolve, self.kind, self.nodes))
        here = (create, among.allgather, layout.index, layout.inside, _PATIENT)
        try:
            self._state, self._arena = open_on_all(own.allgather, partial(open_core, *here))
        finally:
            among.Free()
        inside = Inside(self._state.handle, self._check)
        self._engine = Engine()
        self._watch = watch.create(own.allgather, layout) if len(hosts) > 1 else None
        wire = Wire(own.Dup(), self._look, self._refuse_lost)
        self._ways = Ways(layout, inside, wire, chosen)

    def _leave(self) -> None:
        if self._state is None or self._ways is None:
            return
        self._engine.drain()
        state, ways = self._state, self._ways
        if self._broken is None:
            with suppress(PeerError):
                ways.inside.barrier()
                ways.wire.free()
        if self._watch is not None:
            self._watch.close()
        self._state, self._ways, self._arena, self._watch = None, None, None, None
        state.close()

    def _abandon(self) -> None:
        """A call in flight ends first, soon: it may be inside the core, or wait for a message."""
        if self._ways is None:
            return
        self._broken = self._broken or PeerError("an error ended this rank's part")
        if self._watch is not None:
            self._watch.fail(str(self._broken))
        self._engine.after(self._give_up)

    def _give_up(self) -> None:
        if self._ways is not None:
            self._ways.wire.strand()
        super()._abandon()

    def _look(self, waited: float) -> None:
        """Raise an error where a message cannot come."""
        self._refuse_broken()
        if self._watch is not None:
            self._watch.look(waited)

    def _refuse_lost(self) -> None:
        self._refuse_broken()
        if self._watch is not None:
            self._watch.refuse_lost()

    def _refuse_broken(self) -> None:
        if self._broken is not None:
            raise PeerError(f"this communicator is unusable since: {self._broken}")

    def _neighbours(self) -> Neighbours | None:
        found = super()._neighbours()
        if found is None or self._ways is None:
            return None
        return found._replace(ranks=self._ways.layout.inside)

    # ---- calls ----

    def _again(self, status: int, name: str, *arguments: Any) -> None:
        ways = self._ways
        if ways is not None and (short := flat.of_arrays(ways, name, arguments)) is not None:
            call, start = short
            self._run(partial(self._do, call, partial(ways.wire.collective, name, start)))
            return
        task = self._task(name, *arguments)
        if not isinstance(task, Task):
            task()
            return
        self._run(self._act(task))

    def _run(self, act: Callable[[], None]) -> None:
        """Do a call, after those in flight; the error handler sees its error."""
        self._reporting(partial(self._engine.run, act))

    def _reporting(self, act: Callable[[], None]) -> None:
        try:
            act()
        except HbmcommError as error:
            self._reported(error)
            raise

    def _check(self, status: int) -> None:
        """Raise the error of a part of a call, on any thread; `_run` reports that of a call."""
        if status:
            raise self._error(status)

    def _starting(self, _status: int, name: str, *arguments: Any) -> tuple[Any, ...]:
        if not _has_threads():
            return self._mpi_starts(name, *arguments)
        task = self._task(name, *arguments)
        if not isinstance(task, Task):
            return self._mpi_starts(name, *arguments)
        operation = Operation(self._act(task), self._reported)
        return Request.of(operation), *self._engine.starting(operation)

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        task = self._task(name, *arguments)
        if not isinstance(task, Task) or not _has_threads():
            return Persistent._plan(self, name, info, *arguments)

        def act() -> Callable[[], None]:
            again = self._task(name, *arguments) if task.packs else task
            return self._act(again)

        def run() -> None:
            self._run(act())

        def operation() -> Operation:
            return Operation(act(), self._reported)

        return ThreadedPlan.of(run, operation, self._engine.starting, self._reported)

    def _task(self, name: str, *arguments: Any) -> Any:
        """A call with its operands; where MPI must do it, a function that makes it."""
        operands = self._operands(_UNREADABLE, name, *arguments)
        if not isinstance(operands, Operands):
            return operands
        task = Task(name, operands)
        if not self._serves(task):
            return self._operands(lib.HBM_UNSERVED, name, *arguments)
        if self._must_copy(task):
            task = Task(name, with_copied_input(name, operands, self.size))
        return task

    def _serves(self, task: Task) -> bool:
        """Whether the core serves the call and what becomes of it inside a host, on every rank."""
        if not lib.hbm_serves(task.call, self.size):
            return False
        ways = self._ways
        if ways is None or task.call.reduction != lib.HBM_USER or ways.layout.leaders == 1:
            return True
        inside = ffi.new("hbm_call *", task.call[0])
        inside.operation, inside.count = OPERATIONS.index("Reduce_scatter_block"), 1
        return bool(lib.hbm_serves(inside, ways.layout.most))

    def _must_copy(self, task: Task) -> bool:
        """Whether received data would be written over data that is still to be sent."""
        ways, state = self._ways, self._state
        if ways is not None and state is not None and len(ways.layout.hosts) == 1:
            return bool(lib.hbm_check(state.handle, task.call) == lib.HBM_COPY_FIRST)
        return task.overlaps(self.size)

    def _act(self, task: Task) -> Callable[[], None]:
        def act() -> None:
            assert self._ways is not None
            operations.run(self._ways, task)

        return partial(self._do, task.described, act)

    def _do(self, call: Call, act: Callable[[], None]) -> None:
        """Do a call; a failure makes the communicator unusable."""
        self._refuse_broken()
        if self._ways is None:
            raise HbmcommError(FREED)
        if self._watch is not None:
            self._watch.begin(call)
        try:
            act()
        except BaseException as error:
            self._broken = self._explained(error)
            self._abandon()
            if self._broken is not error:
                raise self._broken from error
            raise
        if self._watch is not None:
            self._watch.end()

    def _explained(self, error: BaseException) -> BaseException:
        """What a failure means: where MPI reports one, the watch may know of a lost rank soon."""
        if not isinstance(error, MPI.Exception) or isinstance(error, HbmcommError):
            return error
        until = time.monotonic() + _SOON
        try:
            while time.monotonic() < until:
                self._look(0.0)
                time.sleep(0.01)
        except (PeerError, CallMismatch) as found:
            return found
        return PeerError(f"MPI failed between hosts: {error}; the communicator is unusable now")

    def _announce(self, name: str, meet: bool = False) -> None:
        """Note a call of MPI, after those in flight; waits for nobody.

        With HBMCOMM_CHECK_CALLS=1 or `meet`, ranks of a host meet in it.
        """
        ways, guard, state = self._ways, self._watch, self._state
        if ways is None or state is None:
            return

        def act() -> None:
            if guard is not None:
                guard.begin(Call(name))
            number = FOREIGN_NUMBERS[name]
            if meet:
                ways.inside.run(ffi.new("hbm_call *", {"operation": number}))
            else:
                ways.inside.note(number)
            if guard is not None:
                guard.end()

        self._reporting(self._refuse_lost)
        if meet or state.tuning["check_calls"]:
            self._run(act)
        else:
            self._reporting(partial(self._engine.after, act))


def _has_threads() -> bool:
    """Whether calls may run on a thread beside the caller's."""
    return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)
