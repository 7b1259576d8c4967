"""The gradients of a network, what their sums must be, and this library's fusion of them."""

import importlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.measure.operations import Array, Ready, nothing
from experiments.model.workloads import WORKLOADS

PATTERN = 7  # tensors that follow each other hold different numbers


def lengths(operation: str) -> list[int]:
    """Elements of each gradient of a workload's network, in the order of a backward pass."""
    return WORKLOADS[operation].lengths[::-1]


def ours(comm: MPI.Intracomm) -> hbmcomm.Communicator:
    """This library's own transport for these ranks, on one host or several; collective."""
    hosts = len(set(comm.allgather(socket.gethostname())))
    return hbmcomm.Communicator(comm, "regular", "hierarchical" if hosts > 1 else "auto")


def private(counts: Sequence[int]) -> list[Array]:
    """Tensors as a program has them: memory that ranks do not share, touched."""
    return [np.full(count, 0, "float32") for count in counts]


def named(tensors: Sequence[Array]) -> list[tuple[str, Array]]:
    """Each with its name."""
    return [(f"gradient{number}", tensor) for number, tensor in enumerate(tensors)]


@dataclass(frozen=True)
class Way:
    """How gradients are reduced during a step.

    Attributes:
        end: what is timed; returns when all are reduced.
        is_there: called with the number of each gradient, once backward has made it.
    """

    tensors: Sequence[Array]
    end: Callable[[], object]
    is_there: Callable[[int], object] = lambda number: None
    close: Callable[[], object] = nothing


def fused(
    own: hbmcomm.Communicator, counts: list[int], shared: bool = True, overlap: bool = False
) -> Way:
    """This library's tensor fusion.

    Args:
        shared: the tensors are in memory of all ranks, so that nothing is packed.
        overlap: each is reduced on another thread as soon as it is there; else all are at the end.
    """
    library: Any = importlib.import_module("hbmcomm.training.fusion")
    fusing = library.FusedAllreduce(own, overlap=overlap)
    tensors = fusing.buffers(counts) if shared else private(counts)
    submitted = named(tensors)

    def is_there(number: int) -> None:
        fusing.submit(*submitted[number])

    def end() -> None:
        for name, tensor in submitted:
            fusing.submit(name, tensor)
        fusing.wait()

    def close() -> None:
        fusing.close()
        own.Free()

    if overlap:
        return Way(tensors, fusing.wait, is_there, close)
    return Way(tensors, end, close=close)


def one_by_one(own: hbmcomm.Communicator, counts: list[int], shared: bool = False) -> Way:
    """A call for each tensor; `shared` places them in memory of all ranks."""
    tensors = [own.zeros(count, "float32") for count in counts] if shared else private(counts)

    def end() -> None:
        for tensor in tensors:
            own.Allreduce(MPI.IN_PLACE, tensor)

    return Way(tensors, end, close=own.Free)


def summed(way: Way, comm: MPI.Intracomm) -> Ready:
    """What times the end of a way, and checks that it replaces all tensors by their sums.

    They are zeros while they are timed, so that sums do not grow.
    """
    tensors = way.tensors

    def wrong() -> int:
        if not tensors:  # it computes alone
            return 0
        for number, tensor in enumerate(tensors):
            tensor.fill(number % PATTERN + comm.rank + 1)
        way.end()
        ranks = comm.size * (comm.size + 1) // 2
        mismatches = sum(
            int(np.count_nonzero(tensor != number % PATTERN * comm.size + ranks))
            for number, tensor in enumerate(tensors)
        )
        for tensor in tensors:
            tensor.fill(0)
        return mismatches

    return Ready(way.end, close=way.close, wrong=wrong)
