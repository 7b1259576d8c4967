"""Rank program: every way to exchange gradients is right, and its check sees a lost exchange."""

from pathlib import Path
from unittest import mock

import numpy as np
from mpi4py import MPI

from experiments.model.systems.modelled import EXCHANGE, TREE_BCAST, TREE_REDUCE
from experiments.model.workloads import WORKLOADS
from experiments.programs.workloads.modelled import gradients, trees

COMM = MPI.COMM_WORLD
STEP = "step_mobilenet_v1"
none, some = np.empty(0, "float32"), np.empty(5000, "float32")

for name in WORKLOADS[STEP].contenders:
    contender = gradients.make(name, COMM, Path())
    ready = contender(STEP, none, none)
    assert ready is not None and ready.wrong is not None
    assert COMM.allreduce(ready.wrong()) == 0, name
    if name in WORKLOADS[EXCHANGE].contenders:
        ready = contender(EXCHANGE, none, some)
        assert ready is not None and ready.wrong is not None
        assert COMM.allreduce(ready.wrong()) == 0, name
with mock.patch.object(gradients, "_exchange"):
    ready = gradients.make("layerwise", COMM, Path())(EXCHANGE, none, some)
    assert ready is not None and ready.wrong is not None
    assert ready.wrong() == some.size

own, total = np.empty(3000, "float32"), np.empty(3000, "float32")
for operation in (TREE_BCAST, TREE_REDUCE):
    for name in WORKLOADS[operation].contenders:
        ready = trees.make(name, COMM, Path())(operation, none, total)
        assert ready is not None and ready.wrong is not None
        assert COMM.allreduce(ready.wrong()) == 0, (operation, name)
    assert COMM.allreduce(trees.wrong(COMM, operation, lambda *_: None, own, total)) > 0, operation
print("right")
