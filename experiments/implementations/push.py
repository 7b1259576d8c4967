"""Rank 0 computes tensors and pushes them, rank 1 reads each once: over every contender alike.

A tensor is computed by one ufunc from an array of rank 0's own, and read by one reduction.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations.contender import Contender, ContenderMissing, require
from experiments.implementations.push_lines import GlooLine, Line, PackedLine, RegionLine
from experiments.implementations.rpc_lines import RpcLine, TunedRpcLine
from experiments.implementations.torch_groups import TorchGroups
from experiments.measure import pools
from experiments.measure.operations import Array, Ready
from experiments.model.workloads import GLOO_SEND, PACK_MPI, REGION, RPC, RPC_TUNED, WORKLOADS

Opened = Callable[[Sequence[int]], Line]
"""Makes a line for tensors of these lengths; a collective."""
FACTORS = (1, 2, 3, 5, 7)


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """One way to push tensors; collective.

    Raises:
        ContenderMissing: there are not two ranks, or they lack a package.
    """
    opened = opener(contender, comm, folder)

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        sizes = WORKLOADS[operation].lengths or [recv.size]
        push = Push(comm, opened(sizes), sizes)
        return Ready(push.step, close=push.line.close, wrong=push.wrong)

    return ready


def opener(contender: str, comm: MPI.Intracomm, folder: Path) -> Opened:
    """What opens lines of a contender; collective. Errors as for `make`."""
    if comm.size != 2:
        raise ContenderMissing(f"a push has two ends; found {comm.size} ranks; ask for --ranks 2")
    if contender == REGION:
        return partial(RegionLine, hbmcomm.Communicator(comm, kind="regular"))
    if contender == GLOO_SEND:
        TorchGroups(comm, folder, pools.of_all_ranks(comm)).gloo()  # makes the default group
        return GlooLine
    if contender in (RPC, RPC_TUNED):
        require(comm, "grpc", "google.protobuf")
    line = {RPC: RpcLine, RPC_TUNED: TunedRpcLine, PACK_MPI: PackedLine}[contender]
    return lambda sizes: line(comm.Dup(), sizes)


class Push:
    """One list of tensors over one line."""

    def __init__(self, comm: MPI.Intracomm, line: Line, sizes: Sequence[int]) -> None:
        self.line = line
        self._comm, self._numbers = comm, range(len(sizes))
        self._inputs = _inputs(tuple(sizes)) if comm.rank == 0 else []
        self._largest = np.zeros(len(sizes), "float32")
        self._steps = 0

    def step(self) -> None:
        """What is timed: compute and push every tensor, or wait for each and read it."""
        self._steps += 1
        if self._comm.rank:
            self._consume(self._read)
        else:
            self._produce()

    def wrong(self) -> int:
        """Push all tensors; how many elements come that differ from what was computed."""
        self._steps += 1
        if self._comm.rank == 0:
            self._comm.bcast((self._factor, self._inputs), 0)
            self._produce()
            return 0
        factor, inputs = self._comm.bcast(None, 0)
        mismatches: list[int] = []

        def compare(number: int, tensor: Array) -> None:
            due = inputs[number] * factor
            mismatches.append(
                int(np.count_nonzero(tensor != due)) if tensor.shape == due.shape else due.size
            )

        self._consume(compare)
        return sum(mismatches)

    @property
    def _factor(self) -> np.float32:
        return np.float32(FACTORS[self._steps % len(FACTORS)])

    def _produce(self) -> None:
        line, factor = self.line, self._factor
        for number, values in zip(self._numbers, self._inputs, strict=True):
            np.multiply(values, factor, out=line.out(number))
            line.send(number)
        line.finish()

    def _consume(self, look: Callable[[int, Array], None]) -> None:
        line = self.line
        for number in self._numbers:
            look(number, line.receive(number))
            line.release(number)

    def _read(self, number: int, tensor: Array) -> None:
        self._largest[number] = np.maximum.reduce(tensor)


@lru_cache(1)
def _inputs(sizes: tuple[int, ...]) -> list[Array]:
    """What tensors are computed from: one for all contenders that take turns."""
    draw = np.random.default_rng(1)
    return [draw.random(size, "float32") for size in sizes]
