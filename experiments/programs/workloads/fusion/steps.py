"""A training step with emulated computation: forward, then backward, which makes the gradients.

OVERLAPPED reduces each gradient on another thread as soon as it is there. COMPUTE reduces nothing:
its time over that of another contender is the latter's efficiency of weak scaling.
"""

from collections.abc import Callable
from dataclasses import replace
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
    Way,
    fused,
    lengths,
    ours,
    private,
    summed,
)


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

        def step() -> None:
            computer.compute(forward)
            for number in range(len(counts)):
                computer.compute(backward)
                way.is_there(number)
            way.end()

        return summed(replace(way, end=step), comm)

    return ready


def _one_by_one(comm: MPI.Intracomm, counts: list[int]) -> Way:
    tensors = private(counts)
    return Way(tensors, nothing, lambda number: comm.Allreduce(MPI.IN_PLACE, tensors[number]))


def _server(comm: MPI.Intracomm, counts: list[int]) -> Way:
    tensors, client = private(counts), Client(comm)
    return Way(
        tensors,
        lambda: client.receive(tensors),
        lambda number: client.send(tensors[number]),
        client.close,
    )


_WAYS: dict[str, Callable[[MPI.Intracomm, list[int]], Way]] = {
    OVERLAPPED: lambda comm, counts: fused(ours(comm), counts, overlap=True),
    AFTER_BACKWARD: lambda comm, counts: fused(ours(comm), counts),
    COMPUTE: lambda _comm, _counts: Way((), nothing),
    MPI_ONE_BY_ONE: _one_by_one,
    GRPC: _server,
}
