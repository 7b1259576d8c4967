"""Runs a rank program on ranks that see different boots, as on several hosts.

Usage: on_hosts.py HOSTS PROGRAM [ARGUMENT...]: HOSTS is the host of each rank, as in 0,0,1. Ranks
of two hosts refuse to share memory; messages of MPI between them stay on this machine.
"""

import runpy
import sys
from pathlib import Path

from mpi4py import MPI

from hbmcomm.memory import procfs

_, hosts, program, *arguments = sys.argv
boot = procfs.boot(Path("/proc"))
procfs.boot = lambda _: (boot + int(hosts.split(",")[MPI.COMM_WORLD.rank])) % 2**32 or 1
sys.argv = [program, *arguments]
sys.path.insert(0, str(Path(program).parent))
runpy.run_path(program, run_name="__main__")
