"""Training with DASO, with an allreduce at each batch, or with each rank alone.

A cell times the batches from one exchange of DASO to the next. On one host, pairs of ranks play
hosts for DASO; its baselines then use the memory of all ranks.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations.contender import Contender
from experiments.implementations.network import (
    Network,
    Samples,
    batches_of,
    samples,
    use_one_thread,
)
from experiments.measure.operations import Array, Ready, nothing
from experiments.model.workloads import ALONE, BLOCKING, DASO, MPI_BLOCKING

SEED = 1
BATCH = 64  # samples of a rank
CYCLE, WAIT = 8, 2  # batches from an exchange to the next, and to its end


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


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """One of the ways; `call` is a cycle of batches, which begins and ends one exchange."""
    use_one_thread()

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        trainer = trainer_of(contender, SEED, comm, epochs=1, warmup=0, cooldown=0)
        batches = batches_of(samples(SEED, comm.rank, CYCLE * BATCH), BATCH)

        def call() -> None:
            for batch in batches:
                trainer.train(batch)

        def wrong() -> int:
            due = trainer.network.copy()
            call()
            _replay(due, batches, comm, contender == ALONE, trainer.daso)
            return sum(
                int(np.count_nonzero(~np.isclose(own, right, rtol=1e-3, atol=1e-5)))
                for own, right in zip(trainer.network.parameters, due.parameters, strict=True)
            )

        return Ready(call, close=trainer.close, wrong=wrong)

    return ready


def trainer_of(contender: str, seed: int, comm: MPI.Intracomm, **phases: float) -> Trainer:
    """A new network in training; collective. `phases` are arguments of DASO's Schedule."""
    if contender == DASO:
        library: Any = importlib.import_module("hbmcomm.training.daso")
        schedule = library.Schedule(skips=CYCLE, wait=WAIT, **phases)
        network = Network(seed)
        arrays = library.Arrays(network.parameters, network.gradients, network.step)
        daso = library.Daso(arrays, comm, schedule, played_host(comm))
        return Trainer(network, daso.step, daso.end_epoch, daso.close, daso)
    if contender == BLOCKING:
        return blocking(seed, hbmcomm.Communicator(comm))
    return blocking(seed, comm.Dup() if contender == MPI_BLOCKING else None)


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


def played_host(comm: MPI.Intracomm) -> int | None:
    """The host that this rank plays where all ranks share memory; None where hosts are real."""
    with hbmcomm.Communicator(comm) as own:
        if own.transport != "direct":
            return None
    return comm.rank // (2 if comm.size >= 4 else 1)


def _replay(
    network: Network, batches: list[Samples], comm: MPI.Intracomm, alone: bool, daso: Any
) -> None:
    """The same cycle by plain calls of MPI; hosts exchange where `daso` is given."""
    host, hosts = (0, 1) if daso is None else (daso.host, daso.hosts)
    inside = comm.Split(comm.rank if alone else host, comm.rank)
    sums: list[Array] = []
    for number, batch in enumerate(batches, 1):
        network.backward(batch)
        inside.Allreduce(MPI.IN_PLACE, network.flat)
        network.flat /= inside.size
        network.step()
        if hosts > 1 and number == 1:
            sums = [comm.allreduce(parameter / inside.size) for parameter in network.parameters]
        if hosts > 1 and number == 1 + WAIT:
            for parameter, total in zip(network.parameters, sums, strict=True):
                parameter[...] = (2 * WAIT * parameter + total) / (2 * WAIT + hosts)
    inside.Free()
