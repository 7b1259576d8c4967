"""Steps of a parameter server over a network's gradients, beside other ways to the same weights.

All contenders of a cell read the same gradients and update the same weights, by SGD with momentum;
each keeps the momentum itself. Ranks share memory.
"""

import importlib
import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.implementations.contender import Contender, ContenderMissing
from experiments.implementations.torch_groups import require_gloo
from experiments.measure.buffers import agree
from experiments.measure.operations import Array, Ready, nothing
from experiments.measure.pools import unpinned
from experiments.model.quantities import parse_size
from experiments.model.workloads import (
    GATHER_NUMPY,
    GLOO_LOCAL,
    PS,
    PS_CHUNKS,
    PS_PULL,
    PS_SHARED,
    PS_UNFUSED,
    TUNED_PS,
    WORKLOADS,
)

RATE, MOMENTUM = 1e-3, 0.9
BUCKET = 25 * 2**20 // 4  # elements that one call of a collective moves, as in DDP
CHECKED = 61  # every so many elements
TIMEOUT = timedelta(seconds=120)

Steps = tuple[Callable[[], object], Callable[[], object], Array]
"""A step, what frees its contender, and the weights that this rank sees."""


DESIGNS: dict[str, dict[str, Any]] = {
    PS: {},
    TUNED_PS: {"chunk_bytes": 4 * 2**20, "fused": False, "pull": True},
    PS_UNFUSED: {"fused": False},
    PS_PULL: {"pull": True},
    PS_SHARED: {"shared_weights": True},
    **{name: {"chunk_bytes": parse_size(name.removeprefix("ps-"))} for name in PS_CHUNKS},
}
"""What ParameterServer is asked for."""


class Arrays:
    """The gradients and weights of a cell on all ranks; made by its first contender, collectively.

    `server` has them; nobody steps it.
    """

    made: ClassVar[dict[str, "Arrays"]] = {}

    def __init__(self, comm: MPI.Intracomm, operation: str) -> None:
        library: Any = importlib.import_module("hbmcomm.training.parameter_server")
        lengths = WORKLOADS[operation].lengths
        self.comm = hbmcomm.Communicator(comm, transport="direct")
        self.server = library.ParameterServer(self.comm, lengths, library.SGD(RATE))
        draw = np.random.default_rng(comm.rank)
        draw.random(out=self.server.all_gradients, dtype="float32")
        self.users, self._operation = 0, operation

    @classmethod
    def of(cls, comm: MPI.Intracomm, operation: str) -> "Arrays":
        """The server and workers of an operation, with one more user."""
        if operation not in cls.made:
            cls.made[operation] = cls(comm, operation)
        cls.made[operation].users += 1
        return cls.made[operation]

    def leave(self) -> None:
        """The last user frees them; collective."""
        self.users -= 1
        if not self.users:
            del self.made[self._operation]
            self.server.close()
            self.comm.Free()


def make(contender: str, comm: MPI.Intracomm, folder: Path) -> Contender:
    """One of the ways; `call` is one step of all ranks.

    Raises:
        ContenderMissing: there is no shared memory, or no torch with gloo.
    """
    with hbmcomm.Communicator(comm) as sharing:
        transport = sharing.transport
    agree(comm, "" if transport == "direct" else "ranks share no memory", ContenderMissing)
    steps: Callable[[MPI.Intracomm, Arrays], Steps]
    if contender == GATHER_NUMPY:
        steps = gathered
    elif contender == GLOO_LOCAL:
        steps = partial(by_gloo, _gloo(comm, folder))
    else:
        steps = partial(served, DESIGNS[contender])

    def ready(operation: str, send: Array, recv: Array) -> Ready:
        arrays = Arrays.of(comm, operation)
        call, free, weights = steps(comm, arrays)

        def close() -> None:
            free()
            arrays.leave()

        check = partial(wrong, comm, arrays.server.all_gradients, call, weights)
        return Ready(call, close=close, wrong=check)

    return ready


def served(design: dict[str, Any], comm: MPI.Intracomm, arrays: Arrays) -> Steps:
    """By ParameterServer."""
    library: Any = importlib.import_module("hbmcomm.training.parameter_server")
    lengths = [gradient.size for gradient in arrays.server.gradients]
    momentum = library.Momentum(RATE, MOMENTUM)
    server = library.ParameterServer(arrays.comm, lengths, momentum, beside=arrays.server, **design)
    return server.step, server.close, server.all_weights


def _buckets(length: int) -> list[slice]:
    return [slice(at, min(at + BUCKET, length)) for at in range(0, length, BUCKET)]


def gathered(comm: MPI.Intracomm, arrays: Arrays) -> Steps:
    """Gather to rank 0, which adds and optimises in NumPy, and Bcast of the weights."""
    library: Any = importlib.import_module("hbmcomm.training.parameter_server")
    optimizer: Any = library.Momentum(RATE, MOMENTUM)
    gradients, weights = arrays.server.all_gradients, arrays.server.all_weights
    at_root = comm.rank == 0
    parts = _buckets(gradients.size)
    room = np.empty(comm.size * min(BUCKET, gradients.size) if at_root else 0, "float32")
    state = np.zeros(gradients.size if at_root else 0, "float32")
    scale = 1 / comm.size

    def step() -> None:
        for part in parts:
            given = gradients[part]
            taken = room[: comm.size * given.size].reshape(comm.size, -1) if at_root else None
            comm.Gather(given, taken)
            if taken is not None:
                total = taken[0]
                for gradient in taken[1:]:
                    total += gradient
                optimizer.apply(weights[part], total, [state[part]], 1, scale)
            comm.Bcast(weights[part])

    return step, nothing, weights


def _gloo(comm: MPI.Intracomm, folder: Path) -> Any:
    """A group of gloo.

    Raises:
        ContenderMissing: on every rank.
    """
    dist = require_gloo(comm)
    store = dist.FileStore(str(folder / "parameter_server_gloo"), comm.size)
    with unpinned(range(os.cpu_count() or 1)):
        return dist.ProcessGroupGloo(store, comm.rank, comm.size, TIMEOUT)


def by_gloo(group: Any, comm: MPI.Intracomm, arrays: Arrays) -> Steps:
    """Allreduce of buckets by gloo, then torch's SGD on every rank.

    Gloo reduces in place, so gradients are copied into buckets first, as DDP does.
    """
    import torch

    gradients = torch.from_numpy(arrays.server.all_gradients)
    weights = torch.from_numpy(arrays.server.all_weights)
    parts = _buckets(len(gradients))
    trained = [torch.nn.Parameter(weights[part]) for part in parts]
    for parameter in trained:
        parameter.grad = torch.empty_like(parameter)
    optimizer = torch.optim.SGD(trained, RATE, MOMENTUM)

    def step() -> None:
        for part, parameter in zip(parts, trained, strict=True):
            torch.mul(gradients[part], 1 / comm.size, out=parameter.grad)
            group.allreduce([parameter.grad]).wait()
        optimizer.step()

    return step, nothing, arrays.server.all_weights


def wrong(comm: MPI.Intracomm, gradients: Array, call: Callable[[], object], weights: Array) -> int:
    """Elements in which a step does not continue the momentum that the step before it shows.

    A step before these gives all workers the same weights: other contenders may not.
    """
    mean = gradients[::CHECKED].copy()
    comm.Allreduce(MPI.IN_PLACE, mean)
    mean /= comm.size
    seen = []
    for _ in range(3):
        comm.Barrier()
        call()
        comm.Barrier()
        seen.append(weights[::CHECKED].copy())
    due = seen[1] - (MOMENTUM * (seen[0] - seen[1]) + RATE * mean)
    room = 1e-2 * RATE + 1e-5 * np.abs(due)
    return int(np.count_nonzero(~(np.abs(seen[2] - due) <= room)))
