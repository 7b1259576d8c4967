"""Rank program: the last rank dies while each other one waits for it in its own way.

Usage: sharing_deaths.py TRANSPORT WAYS FOLDER, where WAYS has one for each rank but the last, such
as flag,test,attach,watch. Each writes what it saw. Ways do not share a communicator, in which one
rank would report to the others.
"""

import os
import signal
import sys
import time
from pathlib import Path

from mpi4py import MPI

import hbmcomm

_, transport, ways, folder = sys.argv
world = hbmcomm.Communicator(kind="regular", transport=transport)
rank, last, seen = world.rank, world.size - 1, "nothing"
comms = [world.Dup() for _ in ways.split(",")]
watches = [hbmcomm.Watch(comm) for comm in comms]
if transport == "direct":
    counters = [comm.zeros(1, "u8") for comm in comms]
    names = [comm.allgather(comm.share(own)) for comm, own in zip(comms, counters, strict=True)]
MPI.COMM_WORLD.Barrier()
if rank == last:
    time.sleep(0.2)  # the others sleep
    os.kill(os.getpid(), signal.SIGKILL)
began, way, comm = time.monotonic(), ways.split(",")[rank], comms[rank]
try:
    if transport == "direct":
        flags = comm.flags(comm.attach(names[rank][last]), last)
    if way == "flag":
        flags.wait(1)
    while time.monotonic() - began < 20:
        if way == "watch":
            watches[rank].check(time.monotonic() - began)
        elif way == "test":
            assert not flags.test(1)
        else:
            comm.attach(names[rank][last])
        time.sleep(0.001)
except hbmcomm.PeerError as error:
    seen = str(error)
Path(folder, str(rank)).write_text(seen, "utf-8")
while time.monotonic() - began < 20 and not all(  # others would take this end for a death too
    Path(folder, str(other)).exists() for other in range(last)
):
    time.sleep(0.001)
os._exit(0)  # MPI's own end would wait for the lost rank
