"""Rank program: both placements of a parameter server are right."""

from pathlib import Path

import numpy as np
from mpi4py import MPI

from experiments.implementations.parameter_server_hosts import make
from experiments.model.workloads import PS_CENTRAL, PS_COLOCATED

COMM = MPI.COMM_WORLD
NONE = np.empty(0, "float32")

for name in (PS_CENTRAL, PS_COLOCATED):
    cell = make(name, COMM, Path())("ps_hosts_mobilenet_v1", NONE, NONE)
    mismatches = COMM.allreduce(cell.wrong())
    assert mismatches == 0, f"{name}: {mismatches} wrong"
    cell.close()
print("right")
