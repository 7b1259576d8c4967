"""What every transport offers beside MPI's calls: a beginning, an end, and a supply of arrays."""

from __future__ import annotations

from mpi4py import MPI

from hbmcomm.memory import arrays
from hbmcomm.memory.kinds import Nodes


class Transport(MPI.Intracomm):
    """Overrides the calls that it does itself; all others stay mpi4py's."""

    kind: str
    """Where the arrays of this communicator live."""
    nodes: Nodes | None
    """The NUMA nodes that they are bound to; None: those that the kind means."""
    device: str | None
    """The device-dax file that they live on; None: ordinary memory of the kind."""

    def _begin(self) -> None:
        """Get ready, all ranks together, once kind and nodes are set."""

    def _abandon(self) -> None:
        """Let go without the others, who may wait for this rank: an error has ended its part."""

    def _supply(self) -> arrays.Supply:
        return arrays.private(self.kind, self.nodes)
