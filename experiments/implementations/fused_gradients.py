"""The sum of all gradients of a network over the ranks, by the ways of making few calls or many.

FUSED and PACKED are this library's tensor fusion. MPI_FUSED is the same design on calls of the MPI,
which is Horovod's; HOROVODS are the original. The others make a call for each tensor, or for each
of DDP's buckets.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations import horovod_allreduce
from experiments.implementations.contender import Contender
from experiments.implementations.fusion_tensors import (
    Way,
    fused,
    lengths,
    one_by_one,
    ours,
    private,
    summed,
)
from experiments.implementations.torch_groups import TorchGroups
from experiments.measure import pools
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import (
    FUSED,
    GLOO_BUCKETS,
    HOROVODS,
    MPI_FUSED,
    MPI_ONE_BY_ONE,
    ONE_BY_ONE,
    ONE_BY_ONE_ARENA,
    PACKED,
)

FIRST_BUCKET, BUCKET = 2**20, 25 * 2**20  # bytes, as in DistributedDataParallel


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """A way to reduce the gradients; collective.

    Raises:
        ContenderMissing: any rank has no torch, or no Horovod.
    """
    if contender == GLOO_BUCKETS:
        return _gloo_buckets(comm, folder)
    if contender in HOROVODS:
        return horovod_allreduce.make(contender, comm)
    of_mpi = partial(hbmcomm.Communicator, kind="regular", transport="mpi")
    ways: dict[str, Callable[[list[int]], Way]] = {
        FUSED: lambda counts: fused(ours(comm), counts),
        PACKED: lambda counts: fused(ours(comm), counts, shared=False),
        MPI_FUSED: lambda counts: fused(of_mpi(comm), counts, shared=False),
        ONE_BY_ONE: lambda counts: one_by_one(ours(comm), counts),
        ONE_BY_ONE_ARENA: lambda counts: one_by_one(ours(comm), counts, shared=True),
        MPI_ONE_BY_ONE: lambda counts: one_by_one(of_mpi(comm), counts),
    }
    return lambda operation, send, recv: summed(ways[contender](lengths(operation)), comm)


def _gloo_buckets(comm: MPI.Intracomm, folder: Path) -> Contender:
    """Gradients are views of buckets, so nothing is packed."""
    gloo = TorchGroups(comm, folder, pools.of_all_ranks(comm)).gloo()

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        tensors: list[Array] = []
        calls: list[Callable[[], object]] = []
        for counts in _bucketed(lengths(operation)):
            (bucket,) = private([sum(counts)])
            tensors += np.split(bucket, np.cumsum(counts)[:-1])
            if reduced := gloo("allreduce", bucket, bucket):
                calls.append(reduced.call)

        def call() -> None:
            for allreduce in calls:
                allreduce()

        return summed(Way(tensors, call), comm)

    return ready


def _bucketed(counts: list[int]) -> list[list[int]]:
    """Lengths of the gradients in each bucket: a first one that is soon full, then long ones."""
    buckets: list[list[int]] = [[]]
    for count in counts:
        limit = FIRST_BUCKET if len(buckets) == 1 else BUCKET
        if buckets[-1] and 4 * (sum(buckets[-1]) + count) > limit:
            buckets.append([])
        buckets[-1].append(count)
    return buckets
