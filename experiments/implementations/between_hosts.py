"""Allreduce of transport hierarchical, by the algorithm that its hosts use among each other."""

from pathlib import Path

from mpi4py import MPI

from experiments.implementations.contender import Contender, ContenderMissing
from experiments.implementations.fusion_tensors import one_by_one, ours, summed
from experiments.measure.operations import Array, Ready
from experiments.processes import executables

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
        with executables.variable(VARIABLE, contender):  # read as a communicator begins
            own = ours(comm)
        return summed(one_by_one(own, [recv.size], shared=True), comm)

    return ready
