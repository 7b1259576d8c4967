"""Allreduce of transport hierarchical, by the algorithm that its hosts use among each other."""

import os
from pathlib import Path

from mpi4py import MPI

from experiments.programs.contenders.contender import Contender, ContenderMissing
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready
from experiments.programs.workloads.fusion.tensors import ours, summed

VARIABLE = "HBMCOMM_BETWEEN_HOSTS"


def make(contender: str, comm: MPI.Intracomm, _folder: Path) -> Contender:
    """Communicators with one algorithm; collective.

    Raises:
        ContenderMissing: all ranks are on one host.
    """
    with ours(comm) as tried:
        if tried.transport != "hierarchical":
            raise ContenderMissing("all ranks are on one host; take --env hosts:4")

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        os.environ[VARIABLE] = contender  # read as a communicator begins
        own = ours(comm)
        del os.environ[VARIABLE]
        buffer = own.zeros(recv.size, "float32")

        def call() -> None:
            own.Allreduce(MPI.IN_PLACE, buffer)

        return summed([buffer], own, call, own.Free)

    return ready
