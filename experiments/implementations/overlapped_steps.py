"""A training step with emulated computation: forward, then backward, which makes the gradients.

OVERLAPPED reduces each gradient on another thread as soon as it is there. COMPUTE reduces nothing:
its time over that of another contender is the latter's efficiency of weak scaling.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mpi4py import MPI

from experiments.implementations.contender import Contender, require
from experiments.implementations.fusion_tensors import (
    Way,
    fused,
    lengths,
    ours,
    private,
    summed,
)
from experiments.implementations.grpc_server import Client
from experiments.measure.operations import Array, Ready, nothing
from experiments.model.workloads import (
    AFTER_BACKWARD,
    COMPUTE,
    GRPC,
    MPI_ONE_BY_ONE,
    ON_DEVICE,
    OVERLAPPED,
    WORKLOADS,
)

CPU_GFLOPS = 250.0  # of one host
DEVICE_GFLOPS = 125.0
"""One host's device is as fast as its part of a CPU that two hosts share."""
BATCH = 32  # samples of a rank in one step
GFLOP = {"resnet50": 4.1, "mobilenet_v1": 0.57}
"""Of one sample's forward pass, as the networks' papers give it; a backward pass has twice that."""

PIECE = 2**20  # bytes
TRIALS = 5


class Device:
    """A device that a rank waits for: its CPU is free meanwhile."""

    gflops = DEVICE_GFLOPS
    compute = staticmethod(time.sleep)


class Cpu:
    """A rank's CPU, which hashes a known number of bytes, the same on all ranks.

    Hashing releases Python's lock, as matrix products do, needs no memory bandwidth, and cannot be
    optimised away. Making it is collective: rank 0 measures, for all.
    """

    gflops = CPU_GFLOPS

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._piece = memoryview(bytes(PIECE))
        seconds = min(self._measure() for _ in range(TRIALS)) if comm.rank == 0 else None
        self._speed: float = PIECE / comm.bcast(seconds)

    def compute(self, seconds: float) -> None:
        """What takes one rank so long on a CPU of its own."""
        left = int(seconds * self._speed)
        while left > 0:
            hashlib.sha256(self._piece[:left]).digest()
            left -= PIECE

    def _measure(self) -> float:
        begin = time.perf_counter()
        hashlib.sha256(self._piece).digest()
        return time.perf_counter() - begin


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
