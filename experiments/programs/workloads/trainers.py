"""Ways to train a network on many ranks: DASO, an allreduce at each batch, or each rank alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.programs.measure.ready import nothing
from experiments.programs.workloads.network import Network, Samples


@dataclass(frozen=True)
class Trainer:
    """One network in training; all calls are collective.

    Attributes:
        network: this rank's.
        step: updates its parameters by the gradients of a batch.
        end_epoch: called with the loss after the last batch of an epoch.
        close: frees what was made for it.
        daso: the optimizer; None: there is no DASO.
    """

    network: Network
    step: Callable[[], object]
    end_epoch: Callable[[float], object] = lambda loss: None
    close: Callable[[], object] = nothing
    daso: Any = None

    def train(self, batch: Samples) -> float:
        """One batch of this rank's samples; its loss."""
        loss = self.network.backward(batch)
        self.step()
        return loss


def with_daso(seed: int, comm: MPI.Intracomm, host: int | None, **schedule: Any) -> Trainer:
    """By hbmcomm.training.daso; `host` and `schedule` are arguments of Daso and of its Schedule."""
    library: Any = importlib.import_module("hbmcomm.training.daso")
    network = Network(seed)
    arrays = library.Arrays(network.parameters, network.gradients, network.step)
    daso = library.Daso(arrays, comm, library.Schedule(**schedule), host)
    return Trainer(network, daso.step, daso.end_epoch, daso.close, daso)


def blocking(seed: int, comm: MPI.Intracomm | None) -> Trainer:
    """By an Allreduce of the gradients at each batch, in place and without a copy.

    Args:
        comm: None: each rank trains alone. A Communicator also gives the memory of the gradients;
            close() frees it.
    """
    network = Network(seed, comm.empty if isinstance(comm, hbmcomm.Communicator) else np.empty)
    if comm is None:
        return Trainer(network, network.step)

    def step() -> None:
        comm.Allreduce(MPI.IN_PLACE, network.flat)
        network.flat *= 1 / comm.size
        network.step()

    return Trainer(network, step, close=comm.Free)
