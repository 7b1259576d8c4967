"""What every transport offers beside MPI's calls: a beginning, an end, and a supply of arrays."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from hbmcomm.collectives.transports.fixed import Fixed
from hbmcomm.collectives.transports.persistent import Persistent
from hbmcomm.errors import KindUnavailable
from hbmcomm.memory.policy.kinds import Kind, Nodes, resolve
from hbmcomm.memory.private import arrays
from hbmcomm.memory.private.numpy_memory import numpy_memory


class Transport(Persistent):
    """Overrides the calls that it does itself; all others stay mpi4py's."""

    kind: Fixed[str]
    """Where the arrays of this communicator live."""
    nodes: Fixed[Nodes | None]
    """The NUMA nodes that they are bound to; None: those that the kind means."""
    device: Fixed[str | None]
    """The device-dax file that they live on; None: ordinary memory of the kind."""

    def _begin(self) -> None:
        """Get ready, all ranks together, once kind and nodes are set."""

    def _abandon(self) -> None:
        """Let go without the others, who may wait for this rank: an error has ended its part."""

    def _supply(self) -> arrays.Supply:
        return arrays.private(self.kind, self.nodes)

    def _numpy_memory(self) -> AbstractContextManager[Kind]:
        if self.nodes is not None:
            raise KindUnavailable(
                f"numpy_memory with nodes={self.nodes} needs transport direct; leave nodes out"
            )
        if self.kind == "regular":  # where NumPy's arrays are anyway
            return nullcontext(resolve(self.kind))
        return numpy_memory(self.kind)
