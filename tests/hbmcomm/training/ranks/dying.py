"""Rank program: the last rank dies in the middle of a job; the others write what they see of it.

Usage: dying.py fused|daso|server|offer|release FOLDER
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, PeerError
from hbmcomm.training.daso import Arrays, Daso, Schedule
from hbmcomm.training.fusion import FusedAllreduce
from hbmcomm.training.parameter_server import SGD, ParameterServer, serve
from hbmcomm.training.regions import Regions
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
DIES = WORLD.rank == WORLD.size - 1
DIED = Path(sys.argv[2]).with_name("died")
"""When the rank died; Linux has one monotonic clock for all processes."""


def die() -> None:
    DIED.write_text(str(time.monotonic()), "ascii")
    os.kill(os.getpid(), signal.SIGKILL)


def fused() -> None:
    job = FusedAllreduce(Communicator(WORLD, "regular", "direct"))
    for _ in range(3):
        job.submit("a", np.ones(1000)).wait()
    if DIES:
        job.submit("a", np.ones(1000))
        die()
    time.sleep(0.1)
    try:
        for name in "abab":
            job.submit(name, np.ones(1000)).wait()
    except PeerError as error:
        with refused(HbmcommError, str(error)):
            job.submit("c", np.ones(1000))
        raise


def daso() -> None:
    x, g = np.zeros(50_000), np.ones(50_000)
    job = Daso(Arrays([x], [g], lambda: None), WORLD, Schedule(1, warmup=0, cooldown=0))
    assert job.hosts == 2
    while True:
        if DIES and job.schedule.batch == 10:
            die()
        job.step()


def server() -> None:
    job = ParameterServer(
        Communicator(WORLD, transport="direct"), [1000, 70_000], SGD(0.1), owners=[0]
    )
    if WORLD.rank == 0:
        serve([(job, 1000)])
    for step in range(1000):
        job.push(1)
        if DIES and step == 5:
            die()
        job.step()


def offer(wait: str = "offer") -> None:
    """Of two ranks; the first one waits for an offer, or for the release of what was offered."""
    transport = "direct" if wait == "release" else "mpi"
    regions = Regions(Communicator(WORLD, kind="regular", transport=transport))
    if DIES:
        if wait == "release":
            regions.allocate(0, {"x": 8})["x"].wait()
        time.sleep(0.2)
        die()
    remote = regions.open(1)["x"]  # waits for the offer
    remote.array(1)[:] = 1.0
    remote.post()
    remote.array(1)  # waits for the release


def release() -> None:
    offer("release")


try:
    globals()[sys.argv[1]]()
    words = "nothing seen"
except PeerError as error:
    words = f"{error} after {time.monotonic() - float(DIED.read_text('ascii')):.1f} s"
Path(sys.argv[2], str(WORLD.rank)).write_text(words, "utf-8")
os._exit(0)  # MPI's own end would wait for the lost rank
