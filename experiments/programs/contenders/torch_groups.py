"""torch.distributed as contenders, where torch can be imported: gloo, and this library's "hbm".

Both see NumPy arrays as tensors, and are called alike: what differs between them is the backend.
"hbm" uses arrays of a Communicator's arena in place, since a process has one segment for a kind.
"""

import importlib
import importlib.util
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.model.contender_names import DEEPSPEED, GLOO, OPERATORS, TORCH, VLLM
from experiments.model.lower_bound import BARRIER
from experiments.model.workloads import DECODE, WORKLOADS
from experiments.programs.contenders import torch_operators
from experiments.programs.contenders.contender import Contender, ContenderMissing, reducing, tensors
from experiments.programs.measure.affinity import unpinned
from experiments.programs.measure.buffers import agree
from experiments.programs.measure.operations import Array
from experiments.programs.measure.ready import Ready
from experiments.programs.torch_steps.decode import decode
from experiments.programs.torch_steps.training import training
from experiments.schedule.footprint import ROOT


@dataclass(frozen=True)
class _Group:
    """A process group of all ranks.

    Attributes:
        keeps_input: reduce() leaves the tensors of other ranks than the root as they were.
    """

    made: Any
    rank: int
    ranks: int
    keeps_input: bool


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
            OPERATORS: self.operators,
            VLLM: self.vllm,
            DEEPSPEED: self.deepspeed,
        }

    def gloo(self) -> Contender:
        """Torch's own backend for CPUs.

        Raises:
            ContenderMissing: any rank has no torch, or a torch without gloo.
        """
        return self._contender(self._connected().group.WORLD, keeps_input=False)

    def hbm(self) -> Contender:
        """The backend of hbmcomm.torch; the first one for a version of torch is compiled here.

        Raises:
            ContenderMissing: gloo() fails, the C++ part cannot be built, or ranks share no memory.
        """
        dist, group = self._connected(), self._of_hbm()[0]
        with unpinned(self._cpus):
            dist.barrier(group=group, async_op=True).wait()  # the first such call makes the worker
        return self._contender(group, keeps_input=True)

    def operators(self) -> Contender:
        """This library's operators over the group of hbm().

        Raises:
            ContenderMissing: as hbm().
        """
        return torch_operators.own(self._of_hbm()[1])

    def vllm(self) -> Contender:
        """vLLM's operators.

        Raises:
            ContenderMissing: gloo() fails, or vLLM is not installed or does not serve these ranks.
        """
        self._connected()
        return torch_operators.vllm(self._comm)

    def deepspeed(self) -> Contender:
        """DeepSpeed's operator.

        Raises:
            ContenderMissing: gloo() fails, or DeepSpeed is not installed or cannot be compiled.
        """
        self._connected()
        return torch_operators.deepspeed(self._comm)

    def _of_hbm(self) -> tuple[Any, int]:
        """The group, and its handle."""
        dist = self._connected()
        agree(self._comm, _build_failure(), ContenderMissing)
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
        """torch.distributed, after its first group has been made, which must be gloo's."""
        if self._dist is not None:
            return self._dist
        dist = require_gloo(self._comm)
        os.environ["DDP_DISABLE_COMM_MEM"] = "0"  # gradients in the arena, where a group has one
        rank, ranks = self._comm.rank, self._comm.size
        store = dist.FileStore(str(self._folder / "torch"), ranks)
        with unpinned(self._cpus):
            dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
        self._dist = dist
        return dist

    def _contender(self, group: Any, keeps_input: bool) -> Contender:
        called = partial(_ready, _Group(group, self._comm.rank, self._comm.size, keeps_input))
        stepped = partial(_stepped, self._comm, group)

        def contender(operation: str, send: Array, recv: Array) -> Ready | None:
            return (stepped if operation in WORKLOADS else called)(operation, send, recv)

        return contender


def require_gloo(comm: MPI.Intracomm) -> Any:
    """torch.distributed with gloo; torch itself computes on the one CPU of a rank. A collective.

    Raises:
        ContenderMissing: on every rank, where any has no torch, or a torch without gloo.
    """
    found = importlib.util.find_spec("torch") is not None
    agree(comm, "" if found else "torch cannot be imported", ContenderMissing)
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    usable = dist.is_available() and dist.is_gloo_available()
    agree(comm, "" if usable else "this torch was built without gloo", ContenderMissing)
    torch.set_num_threads(1)
    return dist


def _build_failure() -> str:
    """Why hbmcomm.torch cannot be built, in one line; "" where it can."""
    builder: Any = importlib.import_module("hbmcomm.torch.build")
    try:
        builder.build()
    except hbmcomm.HbmcommError as error:
        return str(error).partition("\n")[0]
    return ""


def _stepped(comm: MPI.Intracomm, group: Any, operation: str, send: Array, recv: Array) -> Ready:
    """A workload over a group; its receive buffer has the bytes of the cell."""
    if operation == DECODE:
        return decode(comm, group, recv)
    return training(operation, comm, group, recv.nbytes)


def _ready(group: _Group, operation: str, send: Array, recv: Array) -> Ready | None:
    """Torch reduces in place; where MPI leaves the send buffer as it was, a copy is part of it."""
    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    given, taken = tensors(send, recv)
    at_root = group.rank == ROOT
    on = {"group": group.made}

    def rows(tensor: Any) -> list[Any]:
        return list(tensor.view(group.ranks, -1).unbind()) if tensor.numel() else []

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
        "reduce": reduce_kept if group.keeps_input and not at_root else reduce,
        "allreduce": reducing(given, taken, partial(dist.all_reduce, taken, **on)),
        "allgather": lambda: dist.all_gather_into_tensor(taken, given, **on),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(taken, given, **on),
        "alltoall": lambda: dist.all_to_all_single(taken, given, **on),
        BARRIER: lambda: dist.barrier(**on),
    }
    return Ready(calls[operation]) if operation in calls else None
