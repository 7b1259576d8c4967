"""Rank program: the harness; rank 0 dies or hangs in a turn of the third cell, or all ranks fail or
hang when all is written.

Usage: in_a_turn.py dies|hangs|"fails at the end"|"hangs at the end" FOLDER
"""

import os
import signal
import sys
import time
from pathlib import Path

from mpi4py import MPI

from experiments.programs import harness, rank_process
from experiments.programs.cells import Cells
from experiments.schedule.turns import Action, Answer, Order

carry_out = Cells.carry_out


def sabotaged(cells: Cells, order: Order) -> Answer:
    if order.action is Action.TURN and order.cell == 2 and MPI.COMM_WORLD.rank == 0:
        if sys.argv[1] == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if sys.argv[1] == "hangs":
            time.sleep(600)
    return carry_out(cells, order)


Cells.carry_out = sabotaged  # type: ignore[method-assign]
rank_process.run(harness.main, Path(sys.argv[2]))
if sys.argv[1] == "hangs at the end":
    time.sleep(600)
sys.exit(sys.argv[1] == "fails at the end")
