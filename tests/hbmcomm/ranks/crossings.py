"""How often what a rank gives crosses to other nodes, in Bcast and Allgather of arena arrays.

What is longer than the core's slots is fetched once for each other node; what travels in a slot is
read there by every rank that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
IN_SLOTS, IN_SLOTS_OF_SHARED_CPUS = 2048, 32768  # bytes; EAGER_BYTES and SLOT_BYTES of core.h
SIZES = (30, 1000, 80_001)  # float32: in slots, in them where CPUs are shared, pieces and a rest


def expected(nodes: Sequence[int], giver: int, nbytes: int) -> int:
    """Crossings of what one rank gives to all; `nodes` are those of the ranks."""
    elsewhere = [node for node in nodes if node != nodes[giver]]
    return len(set(elsewhere) if nbytes > _slot_bytes() else elsewhere)


def counted(comm: Communicator, call: Callable[[], object]) -> int:
    """Bytes that all ranks together carry between nodes in a call, as the core counts them."""
    before = _carried(comm)
    call()
    return WORLD.allreduce(_carried(comm) - before)


def _carried(comm: Communicator) -> int:
    return comm._state.link_bytes  # type: ignore[attr-defined,no-any-return]


def _slot_bytes() -> int:
    cpus = frozenset().union(*WORLD.allgather(os.sched_getaffinity(0)))
    return IN_SLOTS_OF_SHARED_CPUS if len(cpus) < WORLD.size else IN_SLOTS
