"""Training between two exchanges of DASO, beside the same batches with blocking allreduces.

On one host, pairs of ranks play hosts for DASO; its baselines then use the memory of all ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.model.systems.daso import ALONE, BLOCKING, DASO, MPI_BLOCKING
from experiments.programs.contenders.contender import Contender
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready
from experiments.programs.workloads.blas import use_one_thread
from experiments.programs.workloads.network import Network, Samples, batches_of, samples
from experiments.programs.workloads.trainers import Trainer, blocking, with_daso

SEED = 1
BATCH = 64  # samples of a rank
CYCLE, WAIT = 8, 2  # batches from an exchange to the next, and to its end


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
        return with_daso(seed, comm, played_host(comm), skips=CYCLE, wait=WAIT, **phases)
    if contender == BLOCKING:
        return blocking(seed, hbmcomm.Communicator(comm))
    return blocking(seed, comm.Dup() if contender == MPI_BLOCKING else None)


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
            sums = [comm.allreduce(each / inside.size) for each in network.parameters]
        if hosts > 1 and number == 1 + WAIT:
            for each, total in zip(network.parameters, sums, strict=True):
                each[...] = (2 * WAIT * each + total) / (2 * WAIT + hosts)
    inside.Free()
