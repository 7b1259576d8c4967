"""Transport `hierarchical`: the core among ranks that can share memory, messages of MPI between.

The core does both, and each call is one operation of it, as with transport `direct`. This file
opens and ends what the core needs, and says what its failures mean.
"""

from __future__ import annotations

import time
import weakref
from functools import partial
from typing import Any

from mpi4py import MPI

from hbmcomm.errors import ArenaUnavailable, CallMismatch, HbmcommError, PeerError
from hbmcomm.hierarchical import watch
from hbmcomm.hierarchical.grouping import Layout, find_hosts
from hbmcomm.hierarchical.links import calls_of
from hbmcomm.hierarchical.settings import NAMES, Settings, settings
from hbmcomm.memory import consensus
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve
from hbmcomm.transports import mpi_lock, mpi_progress, native
from hbmcomm.transports.direct import Direct
from hbmcomm.transports.native import FOREIGN_NUMBERS, Core, ffi, forget, keep, lib, setting
from hbmcomm.transports.opening import open_core, open_on_all
from hbmcomm.transports.operand import register
from hbmcomm.transports.transport import Neighbours

_SOON = 1.0  # seconds
_PATIENT = {"spin_us": 0, "yield_us": 200}
"""Thresholds of the core: ranks wait for messages from other hosts, and leave their CPU to MPI. The
ranks of a host are soon there, so they need not sleep."""
_KEEP_THE_STATE = (lib.HBM_PENDING, lib.HBM_BUSY, lib.HBM_FORKED)
"""Statuses after which the communicator is as usable as before."""


class _Hosts:
    """One rank's state of all hosts in the core; `handle` is what its calls take."""

    def __init__(
        self, core: Core, layout: Layout, chosen: Settings, wire: MPI.Intracomm, news: int
    ) -> None:
        self.core, self.wire = core, wire  # the core uses both
        table = ffi.new("hbm_wire *")
        if not lib.hbm_wire_of_mpi(mpi_lock.handle_of(wire, MPI.Comm), table):
            raise ArenaUnavailable("transport hierarchical: mpi4py hides the functions of its MPI")
        host_of = ffi.new("int32_t[]", [layout.host_of[rank] for rank in range(wire.size)])
        leading = ffi.new("int32_t[]", layout.leading)
        setup = {
            "rank": layout.rank,
            "ranks": wire.size,
            "hosts": len(layout.hosts),
            "leaders": layout.leaders,
            "algorithm": NAMES.index(chosen.algorithm),
            "news": news,
            "longest": chosen.segment_bytes or 0,
            "host_of": host_of,
            "leading": leading,
        }
        opened = lib.hbm_open_hosts(core.handle, ffi.new("hbm_hosts_setup *", setup), table)
        if opened == ffi.NULL:
            raise HbmcommError("transport hierarchical: no memory for a communicator")
        self.handle = ffi.gc(opened, lib.hbm_free)  # plans may outlive the communicator
        keep(self, self.handle, core)
        self.close = weakref.finalize(self, _close, self.handle, core)


def _close(handle: Any, core: Core) -> None:
    """Leave, before `core` does."""
    if lib.hbm_close(handle) != lib.HBM_BUSY:  # else another thread waits in it
        forget(handle)


class Hierarchical(Direct):
    """Ranks of one host have a state in the core, and all ranks have one on top of that."""

    _options: Any
    _hosts: _Hosts | None = None
    """None where all ranks are on one host: the core does everything alone then."""
    _watch: watch.Watch | None = None
    _broken: BaseException | None = None
    _inside: tuple[int, ...] = ()

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
        on_each = [len({nodes[member] for member in ranks}) for ranks in hosts]
        layout = Layout(hosts, rank, chosen.leaders or min(on_each), nodes)
        among = MPI.Intracomm(own.Split(layout.host, rank))
        create = partial(create_arena, kind=partial(resolve, self.kind, self.nodes))
        thresholds = _PATIENT if len(hosts) > 1 else {}
        here = (create, among.allgather, layout.index, layout.inside, thresholds)
        try:
            self._state, self._arena = open_on_all(own.allgather, partial(open_core, *here))
        finally:
            among.Free()
        self._inside, self._core = layout.inside, self._state.handle
        if len(hosts) > 1:
            self._open_hosts(own, layout, chosen)
        self._handle = int(ffi.cast("uintptr_t", self._core))

    def _open_hosts(self, own: MPI.Intracomm, layout: Layout, chosen: Settings) -> None:
        assert self._state is not None
        self._watch = watch.create(own.allgather, layout)
        wire = MPI.Intracomm(own.Dup())
        wire.Set_errhandler(MPI.ERRORS_RETURN)
        news = -1 if self._watch is None else self._watch.news
        self._hosts = _Hosts(self._state, layout, chosen, wire, news)
        self._core = self._hosts.handle
        if self._watch is not None:
            self._watch.watch_calls(calls_of(self._core))

    def _leave(self) -> None:
        state, hosts = self._state, self._hosts
        if hosts is None or state is None:
            super()._leave()
            return
        if self._broken is None:
            last = ffi.new("hbm_call *", {"operation": FOREIGN_NUMBERS["Barrier"]})
            status = lib.hbm_run(self._core, last)  # after all that is in flight
            if status == lib.HBM_BUSY:
                raise self._reported(state.error(status))
            if status:
                self._error(status)
        if self._broken is None:
            hosts.wire.Free()
        hosts.close()
        if self._watch is not None:
            self._watch.close()
        self._state, self._core, self._handle, self._arena = None, ffi.NULL, 0, None
        self._watch = self._hosts = None
        state.close()

    def _abandon(self) -> None:
        """Calls in flight end; another thread's blocking call does soon."""
        if self._hosts is not None:
            self._broken = self._broken or PeerError("an error ended this rank's part")
            if self._watch is not None:
                self._watch.fail(str(self._broken))
            lib.hbm_lose(self._hosts.handle)
            self._hosts.close()
        super()._abandon()

    def _neighbours(self) -> Neighbours | None:
        neighbours = super()._neighbours()
        return None if neighbours is None else neighbours._replace(ranks=self._inside)

    # ---- failures ----

    def _error(self, status: int) -> BaseException:
        """What a status means; a failure makes the communicator unusable."""
        state = self._state
        if self._hosts is None or state is None or status in _KEEP_THE_STATE:
            return super()._error(status)
        if self._broken is not None:
            return PeerError(f"this communicator is unusable since: {self._broken}")
        self._broken = self._explained(status, state, self._hosts)
        self._abandon()
        return self._broken

    def _explained(self, status: int, state: Core, hosts: _Hosts) -> BaseException:
        why, inside = ffi.new("hbm_failure *"), ffi.new("hbm_failure *")
        between = lib.hbm_failure_of(hosts.handle, why) in (lib.HBM_LOST, lib.HBM_WIRE_FAILED)
        if status == lib.HBM_INTERRUPTED or (
            not between and lib.hbm_failure_of(state.handle, inside)
        ):
            return state.error(status)
        until = time.monotonic() + (_SOON if status == lib.HBM_WIRE_FAILED else 0)
        while self._watch is not None:  # where MPI fails, news of a lost rank may come soon
            try:
                self._watch.refuse_lost()
            except (PeerError, CallMismatch) as lost:
                return lost
            if time.monotonic() >= until:
                break
            time.sleep(0.01)
        if status == lib.HBM_WIRE_FAILED:
            text = MPI.Get_error_string(ffi.cast("int", why.own_what))
            return PeerError(f"MPI failed between hosts: {text}; the communicator is unusable now")
        return native.explained(why, self.rank, range(self.size))
