"""What names an entry of a contest: operations, transports and contenders, forms of a call."""

from experiments.model.environment import MPIS
from experiments.model.lower_bound import BARRIER

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

PLAIN, PERSISTENT, NONBLOCKING, IN_PLACE = "plain", "persistent", "nonblocking", "in-place"
FORMS = (PLAIN, PERSISTENT, NONBLOCKING, IN_PLACE)
"""Allreduce(...); MPI-4's Allreduce_init, then Start and Wait; Iallreduce(...), then Wait;
Allreduce(IN_PLACE, ...), which is measured of this operation alone."""

DIRECT, AGAIN = "direct", "direct-again"
OTHER_BUILD, OTHER_AGAIN = "other-build", "other-build-again"
MPI_ITSELF, PICKLE, GLOO, TORCH = "mpi", "pickle", "gloo", "torch"
OBJECTS = "objects"
"""Contenders where MPIs are the arms. AGAIN is DIRECT once more: what differs between the two is
noise. PICKLE is mpi4py's lower-case calls, OBJECTS this library's. OTHER_BUILD is `direct` of
another tree of the library. It has two turns as well: what runs twice as often finds its code in
the caches more often, and took 1 to 2 % less for 8 bytes. GLOO and TORCH are torch.distributed with
its own backend and with this library's."""

OPERATORS, VLLM, DEEPSPEED = "operators", "vllm", "deepspeed"
"""Operators of torch without torch.distributed, in a bench: of this library, and of two others."""

ONECCL = "oneccl"
"""Intel's library, which torch used until 2.8; in a bench beside Intel MPI."""

TORCH_GROUPS = (GLOO, TORCH)
"""Contenders that may take part where environments are the arms, too."""

OF_TORCH = (*TORCH_GROUPS, OPERATORS, VLLM, DEEPSPEED, ONECCL)
"""Contenders of torch and of collectives made for it; a bench's second table."""

NO_MPI = (PICKLE, OBJECTS, *OF_TORCH)

CONTENDERS = (DIRECT, AGAIN, OTHER_BUILD, OTHER_AGAIN, MPI_ITSELF, *NO_MPI)

NO_TRANSPORT = "none"
"""A plain copy's: each rank copies its own buffer."""

OURS = (DIRECT, AGAIN, OTHER_BUILD, OTHER_AGAIN, OBJECTS, NO_TRANSPORT)


def changed(variable: str, value: int) -> str:
    """DIRECT with another value of one threshold, as this environment variable sets it."""
    return f"{DIRECT} {variable}={value}"


def change(contender: str) -> tuple[str, str] | None:
    """The variable and the value of such a contender; None: it is another one."""
    name, _, setting = contender.partition(" ")
    variable, _, value = setting.partition("=")
    return (variable, value) if name == DIRECT and variable else None


def is_ours(contender: str) -> bool:
    """Whether its wrong result or crash ends a bench; a peer's is left out and noted."""
    return contender in OURS or change(contender) is not None


def _all_but(*names: str) -> tuple[str, ...]:
    return tuple(name for name in CALLS if name not in names)


LACKING: dict[str, tuple[str, ...]] = {
    PICKLE: ("reduce_scatter", BARRIER),
    OBJECTS: ("reduce_scatter", BARRIER),
    GLOO: (),
    TORCH: (),
    OPERATORS: ("gather", "reduce", "scatter", BARRIER),
    VLLM: _all_but("gather", "allreduce", "allgather"),
    DEEPSPEED: _all_but("allreduce"),
    ONECCL: _all_but("allreduce", "bcast", "allgather", "alltoall", "reduce_scatter"),
}
"""Operations that each of NO_MPI does not have. Calls are plain, or in place but for PICKLE
and OBJECTS."""

BROKEN = {"impi": ("gather", "scatter", "allgather")}
"""Persistent calls that an MPI has and cannot do. Intel MPI 2021.18: the second Start of these
leaves the receive buffer as it was with 2 ranks, and crashes or hangs with 3."""

PEERS = (*MPIS, *NO_MPI)
"""The peers of direct over all launches: each MPI by its flavour."""

SHOWN = (OTHER_BUILD, *PEERS)
"""Everything that a ratio is shown for, in this order."""

OTHER_LABEL = "other_build"
"""The key of campaign.json with the other build's revision or version."""
OTHER_PACKAGE = "HBMCOMM_OTHER_PACKAGE"
"""The variable that names the folder of the other build's package to the ranks."""
