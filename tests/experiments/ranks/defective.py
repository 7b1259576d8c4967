"""Rank program: the harness with a defect on one rank."""

import sys
from pathlib import Path

from mpi4py import MPI

from experiments.programs import harness, rank_process


def choose_cpu(rank: int, *_: object) -> int:
    return 1 // (1 - rank)


if MPI.COMM_WORLD.rank == 1:
    rank_process.pin = choose_cpu
rank_process.run(harness.main, Path(sys.argv[1]))
