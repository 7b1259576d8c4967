"""Placements of a parameter server over the links of hosts: as many workers in each.

Central: half of the ranks own chunks and the others work. Colocated: as many ranks do both, and the
others sleep. A worker's link then carries its own part of both jobs.
"""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations.contender import Contender, ContenderMissing
from experiments.implementations.parameter_server import MOMENTUM, RATE, wrong
from experiments.measure.buffers import agree
from experiments.measure.operations import Array, Ready, nothing
from experiments.model.workloads import PS_CENTRAL, WORKLOADS


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """One placement; `call` is one step of all ranks.

    Raises:
        ContenderMissing: the number of ranks is odd.
    """
    odd = f"{comm.size} ranks have no halves"
    agree(comm, odd if comm.size % 2 else "", ContenderMissing)
    workers, central = range(comm.size // 2), contender == PS_CENTRAL
    works = comm.rank in workers
    working = MPI.Intracomm(comm.Split(works, comm.rank))
    owners: Any = [*range(len(workers), comm.size)] if central else "all"

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        if not works and not central:  # such a rank owns nothing either
            return Ready(nothing, wrong=lambda: 0)
        library: Any = importlib.import_module("hbmcomm.training.parameter_server")
        server = library.ParameterServer(
            hbmcomm.Communicator(comm if central else working),
            WORKLOADS[operation].lengths,
            library.Momentum(RATE, MOMENTUM),
            owners=owners,
        )
        if works:
            np.random.default_rng(comm.rank).random(out=server.all_gradients, dtype="float32")

        def check() -> int:
            if works:
                return wrong(working, server.all_gradients, server.step, server.all_weights)
            for _ in range(3):
                server.step()
            return 0

        return Ready(server.step, close=server.close, wrong=check)

    return ready
