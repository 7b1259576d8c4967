"""Rank program: every workload is right on every group, and its check sees what is wrong."""

import os
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from mpi4py import MPI

import hbmcomm
from experiments.model.workloads import COMPUTING, DECODE, WORKLOADS
from experiments.programs.contenders.contender import Contender
from experiments.programs.contenders.torch_groups import TorchGroups
from experiments.programs.measure.ready import Ready
from experiments.programs.torch_steps import training

COMM = MPI.COMM_WORLD


def ready(contender: Contender, operation: str) -> Ready:
    count = 2 * WORKLOADS[operation].grain // 4
    send, recv = (direct.empty(length, "float32") for length in (0, count))
    made = contender(operation, send, recv)
    assert made is not None
    return made


def wrong(made: Ready) -> int:
    assert made.wrong is not None
    return int(COMM.allreduce(made.wrong()))


def unreduced(operation: str) -> Any:
    """Leaves the communication out, without the workload's knowledge."""
    if operation == DECODE:
        return mock.patch.object(torch.distributed, "all_reduce")
    return mock.patch.multiple(training, _replicated=_same, _sharded=_same)


def _same(model: Any, _group: Any) -> Any:
    return model


folder = COMM.bcast(tempfile.mkdtemp() if COMM.rank == 0 else None)
direct = hbmcomm.Communicator(COMM, kind="regular", transport="direct")
groups = TorchGroups(COMM, Path(folder), os.sched_getaffinity(0))
for contender in (groups.gloo(), groups.hbm(), groups.computation()):
    for operation in COMPUTING:
        step = ready(contender, operation)
        for _ in range(3):
            step.call()
        assert wrong(step) == 0, operation
for operation in COMPUTING:
    with unreduced(operation):
        assert wrong(ready(groups.hbm(), operation)) > 0, operation
groups.leave()
direct.Free()
print("right")
