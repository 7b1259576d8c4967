"""How much memory the buffers of a launch take. Pure.

Counts elements of messages; measure/buffers.py allocates them.
"""

import numpy as np

from experiments.model.contender_names import OTHER_BUILD
from experiments.model.launch import NUMPY, Launch
from experiments.model.lower_bound import BARRIER, COPY
from experiments.model.workloads import WORKLOADS

ROOT = 0
MEMORY_SHARE = 0.6  # of the machine's available memory that all buffers together may take
NODE_SHARE = 0.9  # of the free memory of an HBM node that buffers together may take

OUTGROWN = 8  # a message of so many caches is out of the cache without a second slot


def in_hbm(kind: str) -> bool:
    """Whether a kind of memory is on HBM nodes, where there are any."""
    return kind.startswith("hbw")


def sizes(operation: str, rank: int, ranks: int) -> tuple[int, int]:
    """Messages that the send and the receive buffer of one rank hold.

    A message is what one rank contributes; where it contributes something else for every other
    rank (alltoall, reduce_scatter), what it contributes for one.
    """
    at_root = rank == ROOT
    return {
        COPY: (1, 1),
        "bcast": (1, 0),
        "gather": (1, ranks if at_root else 0),
        "scatter": (ranks if at_root else 0, 1),
        "reduce": (1, 1 if at_root else 0),
        "allreduce": (1, 1),
        "allgather": (1, ranks),
        "reduce_scatter": (ranks, 1),
        "alltoall": (ranks, ranks),
        BARRIER: (0, 0),
        **{name: (0, 0 if workload.nbytes else 1) for name, workload in WORKLOADS.items()},
    }[operation]


def lengths(launch: Launch, rank: int, cache: int) -> tuple[int, int]:
    """Elements of a rank's send and receive memory: what its largest cell needs.

    Args:
        cache: bytes of the last-level cache, which buffers that rotate must exceed.
    """
    itemsize = np.dtype(launch.dtype).itemsize
    send = recv = 0
    for cell in launch.plan:
        sent, received = sizes(cell.operation, rank, launch.ranks)
        elements, more = cell.bytes // itemsize, 0
        if launch.measurement.cache == "rotating" and cell.bytes < OUTGROWN * cache:
            more = max(2 * cache // itemsize, elements)
        send = max(send, sent * elements + more)
        recv = max(recv, received * elements + more)
    return send, recv


def own_bytes(launch: Launch, rank: int, cache: int) -> int:
    """Bytes of a rank's buffers at any time: those of one kind and locality.

    Another build of the library has buffers of its own, unless all are ordinary arrays. What the
    contenders of a workload hold is alive as long as they take turns.
    """
    other = any(c.transport == OTHER_BUILD and c.buffers != NUMPY for c in launch.cells)
    buffers = (1 + other) * sum(lengths(launch, rank, cache)) * np.dtype(launch.dtype).itemsize
    held = [
        len(contest) * WORKLOADS[contest[0].operation].held * contest[0].bytes
        for contest in launch.contests
        if contest[0].operation in WORKLOADS
    ]
    return buffers + max(held, default=0)


def longest_send(launch: Launch) -> int:
    """Elements of the longest send buffer that any rank has in any cell."""
    most = max(sizes(cell.operation, ROOT, launch.ranks)[0] * cell.bytes for cell in launch.plan)
    return most // np.dtype(launch.dtype).itemsize
