"""Rank program: the harness over a communicator whose Allreduce leaves one element wrong."""

import sys
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments import harness
from hbmcomm import Communicator


class Sabotaged(Communicator):
    """Right everywhere but in the last element of one rank."""

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        super().Allreduce(sendbuf, recvbuf, op)
        if self.rank == 1:
            recvbuf[-1] += 1


def make(comm: MPI.Intracomm, **choices: Any) -> Communicator:
    honest = Communicator(comm, **choices)
    spoilt = MPI.Intracomm.__new__(Sabotaged, honest)
    spoilt.kind, spoilt.nodes = honest.kind, honest.nodes
    return spoilt


hbmcomm.Communicator = make  # type: ignore[assignment,misc]
harness.run(Path(sys.argv[1]))
