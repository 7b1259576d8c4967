"""The nonblocking calls of transport `direct`: started here, completed in any later wait.

Each returns a `Request`. Calls that only MPI can do stay MPI's; so do all calls where MPI neither
polls other libraries nor supports calls of several threads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mpi4py import MPI

from hbmcomm.collectives.calls.call import Call
from hbmcomm.collectives.core import mpi_progress
from hbmcomm.collectives.core.native import ffi
from hbmcomm.collectives.transports.direct_base import DirectBase


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
