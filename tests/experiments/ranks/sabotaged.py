"""Rank program: the harness over a communicator whose Allreduce leaves one element wrong."""

import sys
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.programs import harness
from hbmcomm import Communicator


class Sabotaged(Communicator):
    """Right everywhere but in the last element of one rank."""

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: MPI.Op = MPI.SUM) -> None:
        super().Allreduce(sendbuf, recvbuf, op)
        if self.rank == 1:
            recvbuf[-1] += 1


hbmcomm.Communicator = Sabotaged  # type: ignore[assignment,misc]
harness.run(Path(sys.argv[1]))
