"""The gradients of a network as arrays, what their sums must be, and the ranks that have them."""

import importlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.model.workloads import WORKLOADS
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready, nothing

PATTERN = 7  # tensors that follow each other hold different numbers


def lengths(operation: str) -> list[int]:
    """Elements of each gradient of a workload's network, in the order of a backward pass."""
    return WORKLOADS[operation].lengths[::-1]


def ours(comm: MPI.Intracomm) -> hbmcomm.Communicator:
    """This library's own transport for these ranks, on one host or several; collective."""
    hosts = len(set(comm.allgather(socket.gethostname())))
    return hbmcomm.Communicator(comm, "regular", "hierarchical" if hosts > 1 else "auto")


def fused_allreduce(own: hbmcomm.Communicator, overlap: bool) -> tuple[Any, Callable[[], object]]:
    """This library's tensor fusion over a communicator, and what frees both."""
    library: Any = importlib.import_module("hbmcomm.training.fusion")
    fused = library.FusedAllreduce(own, overlap=overlap)

    def close() -> None:
        fused.close()
        own.Free()

    return fused, close


def private(counts: Sequence[int]) -> list[Array]:
    """Tensors as a program has them: memory that ranks do not share, touched."""
    return [np.full(count, 0, "float32") for count in counts]


@dataclass(frozen=True)
class Gradients:
    """One rank's gradients; they are zeros while they are timed, so that sums do not grow."""

    tensors: Sequence[Array]

    @property
    def named(self) -> list[tuple[str, Array]]:
        """Each with its name."""
        return [(f"gradient{number}", each) for number, each in enumerate(self.tensors)]

    def ready(
        self,
        comm: MPI.Intracomm,
        call: Callable[[], object],
        close: Callable[[], object] = nothing,
        **hooks: Callable[[], object],
    ) -> Ready:
        """A call that replaces all of them by their sums; hooks are `wake` and `rest` of Ready."""

        def wrong() -> int:
            for number, each in enumerate(self.tensors):
                each.fill(number % PATTERN + comm.rank + 1)
            call()
            ranks = comm.size * (comm.size + 1) // 2
            found = sum(
                int(np.count_nonzero(each != number % PATTERN * comm.size + ranks))
                for number, each in enumerate(self.tensors)
            )
            for each in self.tensors:
                each.fill(0)
            return found

        return Ready(call, close=close, wrong=wrong, **hooks)
