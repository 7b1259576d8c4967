"""Broadcast and reduce between hosts: a binomial tree against a root that serves every rank.

The tree is transport hierarchical's, flat is messages of the MPI, all of them under way at once.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from mpi4py import MPI

from experiments.implementations.contender import Contender, of_transport
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import TREE, TREE_BCAST

SETTINGS = {
    "HBMCOMM_BETWEEN_HOSTS": "tree",
    "HBMCOMM_SEGMENT_BYTES": "64MiB",  # slices would share the link of the root
}
Call = Callable[[Array, Array], object]


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """The tree, or flat.

    Raises:
        ContenderMissing: these ranks cannot have transport hierarchical.
    """
    calls = _tree(comm) if contender == TREE else (partial(_bcast, comm), partial(_reduce, comm))

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        call = calls[operation != TREE_BCAST]
        own = np.full_like(recv, comm.rank + 1)
        return Ready(
            partial(call, own, recv), wrong=partial(wrong, comm, operation, call, own, recv)
        )

    return ready


def _tree(comm: MPI.Intracomm) -> tuple[Call, Call]:
    os.environ.update(SETTINGS)  # a launch of this has no other ranks of hierarchical
    tree = of_transport(comm, "hierarchical")
    return lambda own, _: tree.Bcast(own), lambda own, total: tree.Reduce(own, total)


def _bcast(comm: MPI.Intracomm, own: Array, _: Array) -> None:
    """The root sends to each rank."""
    if comm.rank:
        comm.Recv(own, 0)
    else:
        MPI.Request.Waitall([comm.Isend(own, rank) for rank in range(1, comm.size)])


def _reduce(comm: MPI.Intracomm, own: Array, total: Array) -> None:
    """Each rank sends to the root, which adds what comes in the order of the ranks."""
    if comm.rank:
        comm.Send(own, 0)
        return
    parts = [np.empty_like(own) for _ in range(1, comm.size)]
    requests = [comm.Irecv(part, rank) for rank, part in enumerate(parts, 1)]
    np.copyto(total, own)
    for request, part in zip(requests, parts, strict=True):
        request.Wait()
        np.add(total, part, out=total)


def wrong(comm: MPI.Intracomm, operation: str, call: Call, own: Array, total: Array) -> int:
    """Does it once; elements of this rank's result that are not right."""
    own.fill(comm.rank + 1)
    total.fill(0)
    call(own, total)
    if operation == TREE_BCAST:
        return int(np.count_nonzero(own != 1))
    due = comm.size * (comm.size + 1) // 2
    return int(np.count_nonzero(total != due)) if comm.rank == 0 else 0
