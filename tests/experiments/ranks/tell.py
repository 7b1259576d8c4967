"""Rank program: writes what report() and probe() find to a file, as JSON."""

import json
import sys
from pathlib import Path

from mpi4py import MPI

from experiments.programs.machine.datapath import probe
from experiments.programs.machine.mpi_tool_interface import report

found = {"told": report(MPI.COMM_WORLD), **probe(MPI.COMM_WORLD)}
if MPI.COMM_WORLD.rank == 0:
    Path(sys.argv[1]).write_text(json.dumps(found))
