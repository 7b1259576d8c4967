"""Rank program: data-parallel training, the same code for one rank and for many.

After Besch and Pohl (1995): samples are dealt out, every rank broadcasts and sums through the
communicator, and no line asks how many ranks there are. Prints the weights that training ends with.
"""

import sys

import numpy as np
from mpi4py import MPI

import hbmcomm

SAMPLES, WIDTH, STEPS = 48, 6, 40

comm = hbmcomm.Communicator(MPI.COMM_WORLD, kind="regular")
draw = np.random.default_rng(1)
inputs = draw.normal(size=(SAMPLES, WIDTH))[comm.rank :: comm.size]
outputs = inputs @ np.arange(WIDTH)
weights = comm.full(WIDTH, float(comm.rank), "float64")
gradient, total = comm.empty_like(weights), comm.empty_like(weights)

comm.Bcast(weights)
for _ in range(STEPS):
    np.matmul(inputs.T, inputs @ weights - outputs, out=gradient)
    comm.Allreduce(gradient, total)
    weights -= total / SAMPLES * 0.5
comm.Reduce(gradient, total)

if comm.rank == 0:
    sys.stdout.write(f"weights {' '.join(f'{each:.9f}' for each in weights)} end\n")
comm.Free()
