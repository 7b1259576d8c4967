"""Ways to train a network on many ranks: DASO, an allreduce at each batch, or each rank alone."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.programs.workloads.network import Network, Samples


class Trainer(Protocol):
    """One network in training; all calls are collective.

    Attributes:
        network: this rank's.
    """

    network: Network

    def train(self, batch: Samples) -> float:
        """One batch of this rank's samples; its loss."""

    def end_epoch(self, loss: float) -> None:
        """After the last batch of an epoch."""

    def close(self) -> None:
        """Free what was made for it."""


class WithDaso:
    """By hbmcomm.training.daso.

    Attributes:
        daso: the optimizer.
    """

    def __init__(self, seed: int, comm: MPI.Intracomm, host: int | None, **schedule: Any) -> None:
        """`host` and `schedule` are arguments of Daso and of its Schedule."""
        library: Any = importlib.import_module("hbmcomm.training.daso")
        self.network = Network(seed)
        arrays = library.Arrays(self.network.parameters, self.network.gradients, self.network.step)
        self.daso = library.Daso(arrays, comm, library.Schedule(**schedule), host)

    def train(self, batch: Samples) -> float:
        loss = self.network.backward(batch)
        self.daso.step()
        return loss

    def end_epoch(self, loss: float) -> None:
        self.daso.end_epoch(loss)

    def close(self) -> None:
        self.daso.close()


class Blocking:
    """By an Allreduce of the gradients at each batch, in place and without a copy.

    Args:
        comm: None: each rank trains alone. A Communicator also gives the memory of the gradients;
            Blocking frees it.
    """

    def __init__(self, seed: int, comm: MPI.Intracomm | None) -> None:
        empty = comm.empty if isinstance(comm, hbmcomm.Communicator) else np.empty
        self.network = Network(seed, empty)
        self._comm = comm

    def train(self, batch: Samples) -> float:
        loss = self.network.backward(batch)
        if self._comm is not None:
            self._comm.Allreduce(MPI.IN_PLACE, self.network.flat)
            self.network.flat *= 1 / self._comm.size
        self.network.step()
        return loss

    def end_epoch(self, loss: float) -> None:
        """Nothing is in flight."""

    def close(self) -> None:
        if self._comm is not None:
            self._comm.Free()
