"""The persistent forms of every transport: arguments are read once, the collective runs many times.

Each call returns a `Plan`: MPI's own persistent request unless a transport has another.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from mpi4py import MPI

from hbmcomm.errors import HbmcommError
from hbmcomm.transports.plans import FREED, Plan

P = ParamSpec("P")


def _planned(
    original: Callable[Concatenate[Any, P], MPI.Prequest],
) -> Callable[Concatenate[Persistent, P], Plan]:
    """A call of MPI's, by way of `_plan`."""
    name, signature = original.__name__.removesuffix("_init"), inspect.signature(original)
    defaults = [parameter.default for parameter in signature.parameters.values()]
    least = defaults.count(inspect.Parameter.empty)

    @functools.wraps(original)
    def init(self: Persistent, /, *arguments: P.args, **named: P.kwargs) -> Plan:
        given: list[Any] = [self, *arguments]
        if named or not least <= len(given) <= len(defaults):
            try:
                bound = signature.bind(*given, **named)
            except TypeError:
                original(self, *arguments, **named)  # raises mpi4py's error
                raise
            bound.apply_defaults()
            given = [*bound.arguments.values()]
        _, *values, info = *given, *defaults[len(given) :]
        return self._plan(name, info, *values)

    return init


class _MpiPlan(Plan):
    """MPI's own persistent request. Open MPI waits forever for one whose communicator was freed."""

    __slots__ = ("owner",)
    owner: Any

    def Start(self) -> None:
        """Begin the collective.

        Raises:
            HbmcommError: The communicator was freed.
        """
        if self.owner == MPI.COMM_NULL:
            raise self.owner._reported(HbmcommError(FREED))
        MPI.Prequest.Start(self)


class Persistent(MPI.Intracomm):
    """MPI's `*_init` calls by way of one `_plan`."""

    Barrier_init = _planned(MPI.Intracomm.Barrier_init)
    Bcast_init = _planned(MPI.Intracomm.Bcast_init)
    Gather_init = _planned(MPI.Intracomm.Gather_init)
    Scatter_init = _planned(MPI.Intracomm.Scatter_init)
    Allgather_init = _planned(MPI.Intracomm.Allgather_init)
    Alltoall_init = _planned(MPI.Intracomm.Alltoall_init)
    Gatherv_init = _planned(MPI.Intracomm.Gatherv_init)
    Scatterv_init = _planned(MPI.Intracomm.Scatterv_init)
    Allgatherv_init = _planned(MPI.Intracomm.Allgatherv_init)
    Alltoallv_init = _planned(MPI.Intracomm.Alltoallv_init)
    Reduce_init = _planned(MPI.Intracomm.Reduce_init)
    Allreduce_init = _planned(MPI.Intracomm.Allreduce_init)
    Reduce_scatter_block_init = _planned(MPI.Intracomm.Reduce_scatter_block_init)
    Reduce_scatter_init = _planned(MPI.Intracomm.Reduce_scatter_init)
    Scan_init = _planned(MPI.Intracomm.Scan_init)
    Exscan_init = _planned(MPI.Intracomm.Exscan_init)

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        """A plan of the collective `name`; `arguments` are mpi4py's, all of them in their order."""
        plan = _MpiPlan(getattr(MPI.Intracomm, f"{name}_init")(self, *arguments, info))
        plan.owner = self
        return plan
