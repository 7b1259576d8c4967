"""The persistent forms of transport `direct`: plans that the core runs."""

from __future__ import annotations

from functools import partial
from typing import Any

from mpi4py import MPI

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.calls.direct_plan import DirectPlan
from hbmcomm.collectives.calls.plan import Plan
from hbmcomm.collectives.core.native import lib
from hbmcomm.collectives.transports.direct_base import DirectBase


class DirectPlans(DirectBase):
    """Plans of the core, and MPI's where only MPI can do the collective."""

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        call = self._read(lib.HBM_UNREADABLE, name, *arguments)
        if not isinstance(call, Call):
            return super()._plan(name, info, *arguments)
        if lib.hbm_must_copy(self._core, call.call):
            status = lib.HBM_COPY_FIRST
            call = self._read(status, name, *arguments)
        else:
            status = lib.HBM_UNREADABLE
        return DirectPlan.of(self, self._core, call, partial(self._read, status, name, *arguments))
