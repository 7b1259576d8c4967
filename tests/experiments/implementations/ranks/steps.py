"""Rank program: every workload is right on every group, and its check sees what is wrong."""

import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from mpi4py import MPI

import hbmcomm
from experiments.implementations import torch_training
from experiments.implementations.contender import Contender
from experiments.implementations.torch_groups import TorchGroups
from experiments.measure.operations import Ready
from experiments.model.workloads import COMPUTING, DECODE, WORKLOADS

COMM = MPI.COMM_WORLD


def ready(contender: Contender, operation: str) -> Ready:
    count = 2 * WORKLOADS[operation].grain // 4
    send, recv = (direct.empty(length, "float32") for length in (0, count))
    return contender(operation, send, recv)


def wrong(made: Ready) -> int:
    return int(COMM.allreduce(made.wrong()))


def unreduced(operation: str) -> Any:
    """Leaves the communication out, without the workload's knowledge."""
    if operation == DECODE:
        return mock.patch.object(torch.distributed, "all_reduce")
    same = mock.Mock(side_effect=lambda model, group: model)
    return mock.patch.multiple(torch_training, _replicated=same, _sharded=same)


direct = hbmcomm.Communicator(COMM, kind="regular", transport="direct")
groups = TorchGroups(COMM, Path(sys.argv[1]), os.sched_getaffinity(0))
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
