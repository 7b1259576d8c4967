"""torch's gloo as a contender, where torch can be imported: the same buffers, seen as tensors."""

import importlib
import importlib.util
import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.model.lower_bound import BARRIER
from experiments.programs.contenders.contender import Contender, Ready
from experiments.programs.measure.operations import Array
from experiments.schedule.footprint import ROOT


class GlooMissing(Exception):
    """Gloo cannot take part; the text says why, alike on every rank."""


def gloo(comm: MPI.Intracomm, folder: Path, cpus: Collection[int]) -> Contender:
    """Connect all ranks through a file in `folder`; collective.

    Args:
        cpus: where gloo's own threads may run. On this rank's one CPU they would wait for it
            whenever it waits for others.

    Raises:
        GlooMissing: on every rank, when any rank has no torch, or a torch without gloo.
    """
    if not all(comm.allgather(importlib.util.find_spec("torch") is not None)):
        raise GlooMissing("torch cannot be imported")
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    if not all(comm.allgather(dist.is_available() and dist.is_gloo_available())):
        raise GlooMissing("this torch was built without gloo")
    torch.set_num_threads(1)  # a rank has one CPU
    store = dist.FileStore(str(folder / "gloo"), comm.size)
    pinned = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)  # which threads that are made from here on inherit
    dist.init_process_group("gloo", store=store, rank=comm.rank, world_size=comm.size)
    os.sched_setaffinity(0, pinned)
    return partial(_ready, torch, dist, comm.rank, comm.size)


def leave() -> None:
    """Disconnect, where connected; collective."""
    if importlib.util.find_spec("torch") is not None:
        dist: Any = importlib.import_module("torch.distributed")
        if dist.is_available() and dist.is_initialized():
            dist.destroy_process_group()


def _ready(
    torch: Any, dist: Any, rank: int, ranks: int, operation: str, send: Array, recv: Array
) -> Ready | None:
    """Gloo reduces in place; where MPI leaves the send buffer as it was, a copy is part of it."""
    given, taken = torch.from_numpy(send), torch.from_numpy(recv)
    at_root = rank == ROOT

    def rows(tensor: Any) -> list[Any]:
        return list(tensor.view(ranks, -1).unbind()) if tensor.numel() else []

    def allreduce() -> None:
        taken.copy_(given)
        dist.all_reduce(taken)

    scratch = torch.empty_like(given) if operation == "reduce" and not at_root else taken

    def reduce() -> None:
        scratch.copy_(given)
        dist.reduce(scratch, ROOT)

    sent = rows(given) if operation == "scatter" and at_root else None
    received = rows(taken) if operation in ("gather", "allgather") and taken.numel() else None
    calls: dict[str, Callable[[], object]] = {
        "bcast": lambda: dist.broadcast(given, ROOT),
        "gather": lambda: dist.gather(given, received, ROOT),
        "scatter": lambda: dist.scatter(taken, sent, ROOT),
        "reduce": reduce,
        "allreduce": allreduce,
        "allgather": lambda: dist.all_gather(received, given),
        "alltoall": lambda: dist.all_to_all_single(taken, given),
        BARRIER: dist.barrier,
    }
    return Ready(calls[operation]) if operation in calls else None
