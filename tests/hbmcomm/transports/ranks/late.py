"""Rank program: ranks use two communicators in opposite order, with HBMCOMM_TIMEOUT=1.

Prints "named the rank" on each rank, which gets an error that names the rank it waits for.
"""

import os
import re
import time

os.environ["HBMCOMM_TIMEOUT"] = "1"

from mpi4py import MPI

import hbmcomm
from tests.hbmcomm.ranks.refusal import give_up

WORLD = MPI.COMM_WORLD

pair = [hbmcomm.Communicator(WORLD, "regular", "direct") for _ in range(2)]
x = [comm.ones(4) for comm in pair]
for comm, own in zip(pair, x, strict=True):  # nobody is late for these
    time.sleep(0.02 * WORLD.rank)
    comm.Allreduce(MPI.IN_PLACE, own)
began = time.monotonic()
try:
    first = WORLD.rank % 2
    pair[first].Barrier()
except hbmcomm.PeerError as error:
    assert 0.9 < time.monotonic() - began < 20
    other = re.search(r"rank (\d) has waited \d+ s for rank (\d)", str(error))
    interrupted = "was interrupted in a collective" in str(error)
    assert interrupted or (other and other[1] == str(WORLD.rank) != other[2]), error
    print("named the rank", flush=True)
WORLD.Barrier()  # a rank that hears of the other's leaving would name that
for comm in pair:
    give_up(comm)
