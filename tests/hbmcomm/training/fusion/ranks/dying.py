"""Rank program: the last rank dies in the middle of a step. For three ranks."""

import os
import time

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, PeerError
from hbmcomm.training.fusion import FusedAllreduce

WORLD = MPI.COMM_WORLD

comm = Communicator(WORLD, "regular", "direct")
fused = FusedAllreduce(comm)
for _ in range(3):
    fused.submit("a", np.ones(1000)).wait()
if WORLD.rank == WORLD.size - 1:
    fused.submit("a", np.ones(1000))
    os._exit(1)
time.sleep(0.1)
try:
    for name in "abab":
        fused.submit(name, np.ones(1000)).wait()
except PeerError as error:
    try:
        fused.submit("c", np.ones(1000))
    except HbmcommError as again:
        assert str(error) in str(again)
        print("PeerError", flush=True)
os._exit(0)
