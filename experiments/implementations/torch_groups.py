"""torch.distributed as contenders, where torch can be imported: gloo, and this library's "hbm".

Both see NumPy arrays as tensors, and are called alike: what differs between them is the backend.
"hbm" uses arrays of a Communicator's arena in place, since a process has one segment for a kind.
"""

import importlib
import os
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.implementations import torch_operators
from experiments.implementations.contender import (
    Contender,
    ContenderMissing,
    on_all,
    reducing,
    require,
    tensors,
)
from experiments.implementations.torch_decode import decode
from experiments.implementations.torch_training import training
from experiments.measure.operations import Array, Ready
from experiments.measure.pools import unpinned
from experiments.model.contender_names import DEEPSPEED, GLOO, OPERATORS, TORCH, VLLM
from experiments.model.lower_bound import BARRIER
from experiments.model.workloads import DECODE, WORKLOADS
from experiments.schedule.footprint import ROOT


class TorchGroups:
    """The process groups of a launch; each is made, by all ranks together, when it is asked for."""

    def __init__(self, comm: MPI.Intracomm, folder: Path, cpus: Collection[int]) -> None:
        """Make nothing yet.

        Args:
            folder: of the launch; ranks find each other through a file in it.
            cpus: where the groups' own threads may run, as under torchrun.
        """
        self._comm, self._folder, self._cpus = comm, folder, cpus
        self._dist: Any = None
        self._hbm: Any = None

    def makers(self) -> dict[str, Callable[[], Contender]]:
        """What makes each contender, by its name."""
        return {
            GLOO: self.gloo,
            TORCH: self.hbm,
            OPERATORS: lambda: torch_operators.own(self._of_hbm()[1]),
            VLLM: partial(self._after_gloo, torch_operators.vllm),
            DEEPSPEED: partial(self._after_gloo, torch_operators.deepspeed),
        }

    def gloo(self) -> Contender:
        """Torch's own backend for CPUs.

        Raises:
            ContenderMissing: any rank has no torch, or a torch without gloo.
        """
        return partial(_ready, self._comm, self._connected().group.WORLD, keeps_input=False)

    def hbm(self) -> Contender:
        """The backend of hbmcomm.torch; the first one for a version of torch is compiled here.

        Raises:
            ContenderMissing: gloo() fails, the C++ part cannot be built, or ranks share no memory.
        """
        dist, group = self._connected(), self._of_hbm()[0]
        with unpinned(self._cpus):
            dist.barrier(group=group, async_op=True).wait()  # the first such call makes the worker
        return partial(_ready, self._comm, group, keeps_input=True)

    def _after_gloo(self, make: Callable[[MPI.Intracomm], Contender]) -> Contender:
        """Another library's operators."""
        self._connected()
        return make(self._comm)

    def _of_hbm(self) -> tuple[Any, int]:
        """The group, and its handle."""
        dist = self._connected()
        on_all(self._comm, lambda: importlib.import_module("hbmcomm.torch.build").build())
        backend: Any = importlib.import_module("hbmcomm.torch")
        if self._hbm is None:
            self._hbm = dist.new_group(backend="hbm")
        try:
            return self._hbm, backend.handle(self._hbm)
        except ValueError:  # the group is one of gloo, with a warning
            raise ContenderMissing("these ranks cannot share memory") from None

    def computation(self) -> Contender:
        """Workloads in which ranks do not communicate.

        Raises:
            ContenderMissing: as gloo().
        """
        self._connected()
        return partial(_stepped, self._comm, None)

    def leave(self) -> None:
        """Disconnect, where connected; collective."""
        if self._dist is not None:
            self._dist.destroy_process_group()

    def _connected(self) -> Any:
        """torch.distributed, after its first group has been made, which must be gloo's.

        A process has one first group: where another object made it, this one uses it.
        """
        if self._dist is not None:
            return self._dist
        dist = require_gloo(self._comm)
        if not dist.is_initialized():
            os.environ["DDP_DISABLE_COMM_MEM"] = "0"  # gradients in the arena, if a group has one
            rank, ranks = self._comm.rank, self._comm.size
            store = dist.FileStore(str(self._folder / "torch"), ranks)
            with unpinned(self._cpus):
                dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
        self._dist = dist
        return dist


def require_gloo(comm: MPI.Intracomm) -> Any:
    """torch.distributed with gloo; torch itself computes on the one CPU of a rank. A collective.

    Raises:
        ContenderMissing: on every rank, where any has no torch, or a torch without gloo.
    """
    require(comm, "torch")
    return on_all(comm, _with_gloo)


def _with_gloo() -> Any:
    import torch
    from torch import distributed

    if not (distributed.is_available() and distributed.is_gloo_available()):
        raise ContenderMissing("this torch was built without gloo")
    torch.set_num_threads(1)
    return distributed


def _stepped(comm: MPI.Intracomm, group: Any, operation: str, send: Array, recv: Array) -> Ready:
    """A workload over a group; its receive buffer has the bytes of the cell."""
    if operation == DECODE:
        return decode(comm, group, recv)
    return training(operation, comm, group, recv.nbytes)


def _ready(
    comm: MPI.Intracomm, group: Any, operation: str, send: Array, recv: Array, keeps_input: bool
) -> Ready | None:
    """An operation or a workload over a group.

    Torch reduces in place; where MPI leaves the send buffer as it was, a copy is part of it.

    Args:
        keeps_input: reduce() leaves the tensors of other ranks than the root as they were.
    """
    if operation in WORKLOADS:
        return _stepped(comm, group, operation, send, recv)
    import torch
    from torch import distributed as dist

    given, taken = tensors(send, recv)
    at_root = comm.rank == ROOT
    on = {"group": group}

    def rows(tensor: Any) -> list[Any]:
        return list(tensor.view(comm.size, -1).unbind()) if tensor.numel() else []

    scratch = torch.empty_like(given) if operation == "reduce" and not at_root else taken

    def reduce() -> None:
        scratch.copy_(given)
        dist.reduce(scratch, ROOT, **on)

    def reduce_kept() -> None:
        dist.reduce(given, ROOT, **on)

    sent = rows(given) if operation == "scatter" and at_root else None
    received = rows(taken) if operation == "gather" and at_root else None
    calls: dict[str, Callable[[], object]] = {
        "bcast": lambda: dist.broadcast(given, ROOT, **on),
        "gather": lambda: dist.gather(given, received, ROOT, **on),
        "scatter": lambda: dist.scatter(taken, sent, ROOT, **on),
        "reduce": reduce_kept if keeps_input and not at_root else reduce,
        "allreduce": reducing(given, taken, partial(dist.all_reduce, taken, **on)),
        "allgather": lambda: dist.all_gather_into_tensor(taken, given, **on),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(taken, given, **on),
        "alltoall": lambda: dist.all_to_all_single(taken, given, **on),
        BARRIER: lambda: dist.barrier(**on),
    }
    return Ready(calls[operation]) if operation in calls else None
