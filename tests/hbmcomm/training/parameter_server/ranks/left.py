"""Rank program: the memory of a job that a rank drops is not used while others may read it."""

import gc

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.training.parameter_server import SGD, ParameterServer

FLOATS = 1 << 18  # 1 MiB of weights

comm = Communicator(transport="direct")
server = ParameterServer(comm, [np.ones(FLOATS, "float32")], SGD(0.1), pull=True)
server.all_gradients[:] = comm.rank
server.step()
MPI.COMM_WORLD.Barrier()
if comm.rank == 0:
    begin = server.all_weights.ctypes.data
    del server
    gc.collect()
    others = [comm.empty(FLOATS, "float32") for _ in range(8)]
    overlaps = [abs(other.ctypes.data - begin) < 4 * FLOATS for other in others]
    print("rank 0: memory is used again" if any(overlaps) else "rank 0: all memory stays")
MPI.COMM_WORLD.Barrier()
