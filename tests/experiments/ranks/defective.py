"""Rank program: the harness with a defect on one rank."""

import sys
from pathlib import Path

from mpi4py import MPI

from experiments import harness
from experiments.measure import process


def choose_cpu(rank: int, *_: object) -> int:
    return 1 // (1 - rank)


if MPI.COMM_WORLD.rank == 1:
    process.pin = choose_cpu
harness.run(Path(sys.argv[1]))
