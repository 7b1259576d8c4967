"""Rank program: two owners of two jobs each wait in another job first; workers send to both.

Usage: late_owners.py, on four ranks.
"""

from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.training.parameter_server import SGD, ParameterServer

WORLD = MPI.COMM_WORLD
JOBS = {"a": [0, 1, 2], "b": [0, 1, 3]}
ORDERS = ["ba", "ab", "a", "b"]
FLOATS = 2**21  # more pieces for each owner than are under way at once

world = Communicator(WORLD, transport="mpi")
servers = {}
for name, ranks in JOBS.items():
    if WORLD.rank in ranks:
        comm = world.Create_group(WORLD.group.Incl(ranks))
        servers[name] = ParameterServer(comm, [FLOATS], SGD(1.0), owners=[0, 1])
for name in ORDERS[WORLD.rank]:
    for gradient in servers[name].gradients:
        gradient[...] = 1.0
    servers[name].step()
for server in servers.values():
    assert all((weights == -1.0).all() for weights in server.weights)
    server.close()
if WORLD.rank == 0:
    print("all steps are complete")
