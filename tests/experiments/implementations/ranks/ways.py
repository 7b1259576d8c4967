"""Rank program: each contender of the workloads of fusion is right, and its check sees errors.

python ways.py FOLDER [OPERATION/CONTENDER ...]; left out: one workload of each program, all of it
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.implementations import (
    between_hosts,
    fused_gradients,
    fusion_tensors,
    overlapped_steps,
    pointer_lookup,
)
from experiments.implementations.contender import ContenderMissing
from experiments.model.workloads import WORKLOADS

WORLD = MPI.COMM_WORLD
MODULES: dict[str, Any] = {
    "fused_gradients": fused_gradients,
    "overlapped_steps": overlapped_steps,
    "pointer_lookup": pointer_lookup,
    "between_hosts": between_hosts,
}
COUNTS = [9408, 64, 64, 1, 1000]


def check(operation: str, contender: str, folder: Path) -> str:
    send, recv = np.empty(0, "float32"), np.empty(100, "float32")
    try:
        made = MODULES[WORKLOADS[operation].program].make(contender, WORLD, folder)
    except ContenderMissing as reason:
        return f"left out: {reason}"
    ready = made(operation, send, recv)
    for _ in range(2):
        ready.wake()
        for _ in range(3):
            ready.call()
        assert ready.wrong() == 0, (operation, contender)
        ready.rest()
    ready.close()
    return "right"


fused_gradients.lengths = overlapped_steps.lengths = lambda operation: (
    COUNTS
)  # networks that take no time
overlapped_steps.Cpu.gflops = overlapped_steps.Device.gflops = 1e6
nothing = fusion_tensors.summed(
    fusion_tensors.Way(fusion_tensors.private(COUNTS), lambda: None), WORLD
)
assert nothing.wrong() >= sum(COUNTS) // 2, "errors are seen"
folder, *asked = sys.argv[1:]
every = {
    workload.program: name for name, workload in WORKLOADS.items() if workload.program in MODULES
}
for pair in asked or [
    f"{name}/{way}" for name in every.values() for way in WORKLOADS[name].contenders
]:
    operation, contender = pair.split("/")
    verdict = check(operation, contender, Path(folder))
    if WORLD.rank == 0:
        print(operation, contender, verdict, flush=True)
