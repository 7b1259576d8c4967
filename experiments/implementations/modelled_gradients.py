"""A data-parallel training step with emulated computation: gradients are exchanged in buckets.

The computation takes its time and no processor, as that of an accelerator does: a rank looks after
its exchanges meanwhile. step_plan.py has what is computed and exchanged when.
"""

import time
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.implementations import step_plan
from experiments.implementations.contender import Contender, of_transport
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import AFTERWARDS, MPI_LAYERWISE, WORKLOADS
from hbmcomm.costmodel import buckets


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """One way to exchange the gradients.

    Raises:
        ContenderMissing: these ranks share no memory.
    """
    mine = of_transport(comm, "direct")
    calls = comm if contender == MPI_LAYERWISE else mine

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        network = WORKLOADS[operation].network
        count = sum(WORKLOADS[operation].lengths) or recv.size
        own, total = (mine.empty(count, "float32") for _ in range(2))
        own.fill(comm.rank + 1)
        if network:
            exchanges = _Exchanges(calls, network, own, total)
            call = exchanges.afterwards if contender == AFTERWARDS else exchanges.layerwise
        else:
            call = partial(_exchange, calls, own, total)
        return Ready(call, wrong=partial(_wrong, comm, call, total))

    return ready


def _exchange(comm: Any, own: Array, total: Array) -> None:
    comm.Iallreduce(own, total).Wait()


def _wrong(comm: MPI.Intracomm, call: Any, total: Array) -> int:
    total.fill(0)
    call()
    return int(np.count_nonzero(total != comm.size * (comm.size + 1) // 2))


class _Exchanges:
    """One step of a network. Times of the computation count from the begin of the step."""

    def __init__(self, comm: Any, network: str, own: Array, total: Array) -> None:
        self._comm = comm
        layers = step_plan.layers(network)
        forward = step_plan.forward_seconds(network)
        ends = list(accumulate((layer.seconds for layer in layers), initial=forward))
        all_buckets = buckets(layers, step_plan.BUCKET)
        cuts = list(
            accumulate((bucket.nbytes // step_plan.ITEM for bucket in all_buckets), initial=0)
        )
        self._parts = [
            (ends[bucket.layers], own[begin:end], total[begin:end])
            for bucket, begin, end in zip(all_buckets, cuts, cuts[1:], strict=False)
        ]
        self._end = ends[-1]

    def layerwise(self) -> None:
        """Each bucket as soon as its last gradient is computed."""
        start, under_way = time.perf_counter(), list[Any]()
        for due, own, total in self._parts:
            _compute(start + due, under_way)
            under_way.append(self._comm.Iallreduce(own, total))
        _compute(start + self._end, under_way)
        for request in under_way:
            request.Wait()

    def afterwards(self) -> None:
        """All buckets after the computation."""
        _compute(time.perf_counter() + self._end, [])
        for _, own, total in self._parts:
            self._comm.Allreduce(own, total)


def _compute(until: float, under_way: list[Any]) -> None:
    """Wait for the accelerator; exchanges that are complete leave the list."""
    while time.perf_counter() < until:
        if under_way and under_way[0].Test():
            under_way.pop(0)
