"""The computation of a training step, emulated: on a rank's CPU, or on a device beside it."""

import hashlib
import time

from mpi4py import MPI

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
