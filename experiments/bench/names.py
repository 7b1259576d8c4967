"""The words of a bench: operations, who takes part, and the two forms of a call. Names only."""

from experiments.bound import BARRIER
from experiments.environments.mpiexec import FLAVOURS

CALLS = {
    "bcast": "Bcast",
    "gather": "Gather",
    "allreduce": "Allreduce",
    "reduce": "Reduce",
    "scatter": "Scatter",
    "allgather": "Allgather",
    "reduce_scatter": "Reduce_scatter_block",
    "alltoall": "Alltoall",
    BARRIER: "Barrier",
}
"""The operations as mpi4py spells their calls, in the order in which they are shown."""

PLAIN, PERSISTENT = "plain", "persistent"
FORMS = (PLAIN, PERSISTENT)
"""A call with its arguments, and MPI-4's form that reads them once."""

DIRECT, AGAIN, MPI_ITSELF, PICKLE, GLOO = "direct", "direct-again", "mpi", "pickle", "gloo"
"""Contenders of a launch. AGAIN is DIRECT once more: what differs between the two is noise."""

BROKEN = {"impi": ("gather", "scatter", "allgather")}
"""Persistent calls that an MPI has and cannot do. Intel MPI 2021.18: the second Start of these
leaves the receive buffer as it was with 2 ranks, and crashes or hangs with 3."""

PEERS = (*FLAVOURS, PICKLE, GLOO)
"""Whom direct is compared with over all launches: each MPI by its flavour."""
