"""How often what a rank gives crosses to other nodes, in Bcast and Allgather: once to each.

That is so for short messages and for arrays in the arena.
"""

from collections.abc import Callable, Sequence

from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.transports.native import lib

WORLD = MPI.COMM_WORLD
SIZES = (30, 1000, 80_001)  # float32: in slots, in them where CPUs are shared, pieces and a rest


def expected(nodes: Sequence[int], giver: int) -> int:
    """Crossings of what one rank gives to all; `nodes` are those of the ranks."""
    return len(set(nodes) - {nodes[giver]})


def counted(comm: Communicator, call: Callable[[], object]) -> int:
    """Bytes that all ranks together carry between nodes in a call, as the core counts them."""
    before = _carried(comm)
    call()
    return WORLD.allreduce(_carried(comm) - before)


def _carried(comm: Communicator) -> int:
    return int(lib.hbm_link_bytes(comm._core))  # type: ignore[attr-defined]
