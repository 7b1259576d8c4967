"""A training step with emulated computation: forward, then backward, which makes the gradients.

OVERLAPPED reduces each gradient on another thread as soon as it is there. COMPUTE reduces nothing:
its time over that of another contender is the latter's efficiency of weak scaling.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mpi4py import MPI

from experiments.model.systems.fusion import (
    AFTER_BACKWARD,
    COMPUTE,
    GRPC,
    MPI_ONE_BY_ONE,
    ON_DEVICE,
    OVERLAPPED,
)
from experiments.model.workloads import WORKLOADS
from experiments.programs.contenders.contender import Contender, require
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready, nothing
from experiments.programs.workloads.fusion.emulated_compute import BATCH, GFLOP, Cpu, Device
from experiments.programs.workloads.fusion.grpc_server import Client
from experiments.programs.workloads.fusion.tensors import (
    Gradients,
    fused_allreduce,
    lengths,
    ours,
    private,
)


@dataclass(frozen=True)
class Way:
    """How gradients are reduced during a step.

    Attributes:
        is_there: called with the number of each gradient, once backward has made it.
        end: returns when all are reduced.
    """

    tensors: Sequence[Array]
    is_there: Callable[[int], object]
    end: Callable[[], object]
    close: Callable[[], object] = nothing


def make(contender: str, comm: MPI.Intracomm, _folder: Path) -> Contender:
    """A way to reduce the gradients of a step; collective.

    Raises:
        ContenderMissing: GRPC, and any rank has no grpcio.
    """
    if contender == GRPC:
        require(comm, "grpc")

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        counts = lengths(operation)
        way = _WAYS[contender](comm, counts)
        computer = Device() if operation in ON_DEVICE else Cpu(comm)
        forward = GFLOP[WORKLOADS[operation].network] * BATCH / computer.gflops  # seconds
        backward = 2 * forward / len(counts)  # of a layer; a network's take about as long each

        def call() -> None:
            computer.compute(forward)
            for number in range(len(counts)):
                computer.compute(backward)
                way.is_there(number)
            way.end()

        if contender == COMPUTE:
            return Ready(call, wrong=lambda: 0)
        return Gradients(way.tensors).ready(comm, call, way.close)

    return ready


def _wait(_number: int) -> None:
    """Reduce nothing before the end."""


def _fused(overlap: bool, comm: MPI.Intracomm, counts: list[int]) -> Way:
    fused, close = fused_allreduce(ours(comm), overlap)
    tensors = fused.buffers(counts)

    def submit(number: int) -> None:
        fused.submit(str(number), tensors[number])

    def end() -> None:
        for number in range(len(tensors)):
            submit(number)
        fused.wait()

    return Way(tensors, submit, fused.wait, close) if overlap else Way(tensors, _wait, end, close)


def _one_by_one(comm: MPI.Intracomm, counts: list[int]) -> Way:
    tensors = private(counts)
    return Way(tensors, lambda number: comm.Allreduce(MPI.IN_PLACE, tensors[number]), nothing)


def _server(comm: MPI.Intracomm, counts: list[int]) -> Way:
    tensors, client = private(counts), Client(comm)
    return Way(
        tensors,
        lambda number: client.send(tensors[number]),
        lambda: client.receive(tensors),
        client.close,
    )


_WAYS: dict[str, Callable[[MPI.Intracomm, list[int]], Way]] = {
    OVERLAPPED: partial(_fused, True),
    AFTER_BACKWARD: partial(_fused, False),
    COMPUTE: lambda _comm, _counts: Way((), _wait, nothing),
    MPI_ONE_BY_ONE: _one_by_one,
    GRPC: _server,
}
