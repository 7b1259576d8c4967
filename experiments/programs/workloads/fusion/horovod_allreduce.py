"""Gradients reduced by Horovod, where it has been built for the MPI of these ranks.

Its threads agree on tensors in every cycle, also while no tensor waits. So Horovod runs during its
own turns only: it is initialised before each and shut down after it, outside what is timed.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.model.systems.fusion import HOROVOD_FOLDER
from experiments.programs.contenders.contender import Contender, ContenderMissing, on_all
from experiments.programs.measure import affinity
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready
from experiments.programs.workloads.fusion.tensors import Gradients, lengths, private

SETTINGS = {
    "HOROVOD_FUSION_THRESHOLD": str(2**20),  # bytes; 128 MiB if left alone
    "HOROVOD_CYCLE_TIME": "0.1",  # milliseconds; 1 if left alone
}
"""The fastest of its settings on two cores; those of the user's environment go first."""


def _imported() -> Any:
    sys.path.append(str(Path(sys.prefix) / HOROVOD_FOLDER))
    try:
        return importlib.import_module("horovod.torch")
    except ImportError as error:
        raise ContenderMissing(f"horovod is not built for this MPI: {error}") from error


def make(comm: MPI.Intracomm) -> Contender:
    """Horovod's Allreduce of every tensor, by name and in place; collective.

    Raises:
        ContenderMissing: any rank has no torch or no Horovod.
    """
    horovod = on_all(comm, _imported)
    import torch

    os.environ.update(SETTINGS | os.environ)
    own = comm.Dup()
    cpus = affinity.of_all_ranks(comm)

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        gradients = Gradients(private(lengths(operation)))
        tensors = [(torch.from_numpy(each), name) for name, each in gradients.named]

        def wake() -> None:
            with affinity.unpinned(cpus):
                horovod.init(own)

        def call() -> None:
            begun = [
                horovod.allreduce_async_(each, name=name, op=horovod.Sum) for each, name in tensors
            ]
            for each in begun:
                horovod.synchronize(each)

        return gradients.ready(own, call, horovod.shutdown, wake=wake, rest=horovod.shutdown)

    return ready
