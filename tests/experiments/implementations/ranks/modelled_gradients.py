"""Rank program: every way to exchange gradients is right, and its check sees a lost exchange."""

from pathlib import Path
from unittest import mock

import numpy as np
from mpi4py import MPI

from experiments.implementations import modelled_gradients, modelled_trees
from experiments.model.workloads import EXCHANGE, TREE_BCAST, TREE_REDUCE, WORKLOADS

COMM = MPI.COMM_WORLD
SIZES = {"step_mobilenet_v1": 0, EXCHANGE: 5000, TREE_BCAST: 3000, TREE_REDUCE: 3000}
"""Elements of the receive buffer, by operation."""


def wrong(operation: str, contender: str) -> int:
    program = modelled_trees if operation in (TREE_BCAST, TREE_REDUCE) else modelled_gradients
    recv = np.empty(SIZES[operation], "float32")
    ready = program.make(contender, COMM, Path())(operation, np.empty(0, "float32"), recv)
    return COMM.allreduce(ready.wrong())


for operation in SIZES:
    for contender in WORKLOADS[operation].contenders:
        assert wrong(operation, contender) == 0, (operation, contender)
with mock.patch.object(modelled_gradients, "_exchange"):
    assert wrong(EXCHANGE, "layerwise") == SIZES[EXCHANGE] * COMM.size
own, total = np.empty(3000, "float32"), np.empty(3000, "float32")
for operation in (TREE_BCAST, TREE_REDUCE):
    assert COMM.allreduce(modelled_trees.wrong(COMM, operation, lambda *_: None, own, total)) > 0, (
        operation
    )
print("right")
