"""Rank program: a worker is killed in the middle of a job; every other rank learns of it.

Usage: dies.py FOLDER. Each survivor leaves a file there with what it saw.
"""

import os
import signal
import sys
import time
from pathlib import Path

from mpi4py import MPI

from hbmcomm import Communicator, PeerError
from hbmcomm.training.parameter_server import SGD, ParameterServer, serve

WORLD = MPI.COMM_WORLD
DEAD = 3

comm = Communicator(WORLD, transport="direct")
server = ParameterServer(comm, [1000, 70_000], SGD(0.1), owners=[0])
began = time.monotonic()
try:
    if WORLD.rank == 0:
        serve([(server, 1000)])
    for step in range(1000 if WORLD.rank else 0):
        server.push(1)
        if WORLD.rank == DEAD and step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        server.step()
except PeerError as error:
    words = f"{error} after {time.monotonic() - began:.1f} s"
    (Path(sys.argv[1]) / str(WORLD.rank)).write_text(words)
os._exit(0)  # MPI's own end would wait for the lost rank
