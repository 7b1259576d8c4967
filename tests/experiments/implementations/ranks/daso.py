"""Rank program: each way through a cycle of DASO is right, and its check sees what is wrong."""

from pathlib import Path
from unittest import mock

import numpy as np
from mpi4py import MPI

from experiments.implementations import daso
from experiments.measure.operations import Ready
from experiments.model.workloads import DASO, DASO_STEP, WORKLOADS

COMM = MPI.COMM_WORLD
NOTHING = np.empty(0, "f")
daso.BATCH = 8  # samples, so that the check takes little time


def ready(contender: str) -> Ready:
    return daso.make(contender, COMM, Path())(DASO_STEP, NOTHING, NOTHING)


def wrong(made: Ready) -> int:
    mismatches = COMM.allreduce(made.wrong())
    made.close()
    return mismatches


for name in WORKLOADS[DASO_STEP].contenders:
    step = ready(name)
    step.call()
    assert wrong(step) == 0, name
with mock.patch.object(daso, "WAIT", 3):
    late = ready(DASO)
assert wrong(late) > 0
with mock.patch.object(daso, "trainer_of", lambda *_, **__: daso.blocking(1, None)):
    alone = ready("blocking")
assert wrong(alone) > 0
print("right")
