"""Rank program: parameter servers and their baselines are right; the check sees a lost step."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from experiments.implementations.contender import ContenderMissing
from experiments.implementations.parameter_server import CHECKED, DESIGNS, Arrays, make, wrong
from experiments.model.workloads import GATHER_NUMPY, GLOO_LOCAL

COMM = MPI.COMM_WORLD
OPERATION = "ps_hosts_mobilenet_v1"  # the smallest network
NONE = np.empty(0, "float32")

folder = Path(sys.argv[1])
cells = {}
for name in (*DESIGNS, GATHER_NUMPY, GLOO_LOCAL):
    try:
        cells[name] = make(name, COMM, folder)(OPERATION, NONE, NONE)
    except ContenderMissing:
        assert name == GLOO_LOCAL and importlib.util.find_spec("torch") is None
arrays = Arrays.made[OPERATION]
assert len({id(made) for made in Arrays.made.values()}) == 1
for name, cell in cells.items():
    mismatches = COMM.allreduce(cell.wrong())
    assert mismatches == 0, f"{name}: {mismatches} wrong"
stuck = wrong(COMM, arrays.server.all_gradients, lambda: None, arrays.server.all_weights)
assert stuck > 0.9 * len(arrays.server.all_weights[::CHECKED]), stuck  # some gradients are small
for cell in cells.values():
    cell.close()
assert not Arrays.made
print("right")
