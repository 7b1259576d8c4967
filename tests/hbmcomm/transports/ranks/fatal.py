"""Rank program: with a fatal error handler, an error of a call ends the job.

Usage: fatal.py TRANSPORT HANDLER WAY, for the handler's name in MPI and the name of a way in
handlers.py.
"""

import sys

from handlers import WAYS, broken
from mpi4py import MPI

from tests.hbmcomm.ranks.ending import say

transport, handler, way = sys.argv[1:]
comm = broken(transport)
MPI.COMM_WORLD.Barrier()
comm.Set_errhandler(getattr(MPI, handler))
try:
    WAYS[way](comm)
finally:
    say("went on")
