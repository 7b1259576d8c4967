"""Runs a program of this folder on ranks that see different boots, as on several hosts.

Usage: hosts.py HOSTS PROGRAM [ARGUMENT...]: HOSTS is the host of each rank, as in 0,0,1.
"""

import os
import runpy
import sys
from pathlib import Path

from hbmcomm.memory import procfs

RANK = int(os.environ["RANK"])
_, hosts, program, *arguments = sys.argv
boot = procfs.boot(Path("/proc"))
procfs.boot = lambda _: boot + int(hosts.split(",")[RANK])
path = Path(__file__).parent / f"{program}.py"
sys.argv = [str(path), *arguments]
runpy.run_path(str(path), run_name="__main__")
