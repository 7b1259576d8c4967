"""A training step of a small network: forward, backward with the gradients' mean, and SGD.

DistributedDataParallel has every rank keep all parameters and average the gradients; fully_shard
(FSDP2) has each keep a share, gather a layer before its use, and reduce-scatter its gradients.
"""

from typing import Any

import numpy as np
from mpi4py import MPI

from experiments.measure.operations import Array, Ready
from experiments.model.workloads import DDP, WIDTH, WORKLOADS

BATCH = 32  # samples of a rank in one step
RATE = 0.01
SEED = 1


def training(operation: str, comm: MPI.Intracomm, group: Any, nbytes: int) -> Ready:
    """One step of the network that has so many bytes of parameters.

    Args:
        operation: DDP or FSDP2.
        group: None: the ranks do not communicate, and each trains a network of its own.
    """
    import torch

    model = _network(nbytes)
    if group is not None:
        model = _replicated(model, group) if operation == DDP else _sharded(model, group)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    samples = _samples(comm.rank)

    def step() -> None:
        optimizer.zero_grad()
        _loss(model, samples).backward()
        optimizer.step()

    def wrong() -> int:
        before = [_whole(parameter).clone() for parameter in model.parameters()]
        step()
        if group is None:
            return 0
        gradients = [_whole(parameter.grad).numpy() for parameter in model.parameters()]
        due = _mean_gradients(comm, nbytes, before, samples)
        return sum(
            int(np.count_nonzero(~np.isclose(own, right, rtol=1e-3, atol=1e-7)))
            for own, right in zip(gradients, due, strict=True)
        )

    return Ready(step, wrong=wrong)


def _network(nbytes: int) -> Any:
    """Layers of one grain each; alike on every rank."""
    import torch

    torch.manual_seed(SEED)
    count = nbytes // WORKLOADS[DDP].grain
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(count)]
    return torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.Tanh())))


def _replicated(model: Any, group: Any) -> Any:
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)


def _sharded(model: Any, group: Any) -> Any:
    from torch.distributed import get_backend
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, "cpu")
    allocates = get_backend(group) == "hbm"
    for layer in (*model[::2], model):
        sharded = fully_shard(layer, mesh=mesh)
        sharded.set_allocate_memory_from_process_group_for_comm(allocates)
    return model


def _samples(rank: int) -> tuple[Any, Any]:
    """Inputs and what the network is to learn; other ones on each rank."""
    import torch

    inputs = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(SEED + 1 + rank))
    return inputs, inputs.roll(1, 1).sin()


def _loss(model: Any, samples: tuple[Any, Any]) -> Any:
    inputs, due = samples
    return (model(inputs) - due).square().sum() / BATCH


def _whole(tensor: Any) -> Any:
    """A tensor's elements on all ranks; a collective where it is sharded."""
    tensor = tensor.detach()
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def _mean_gradients(
    comm: MPI.Intracomm, nbytes: int, parameters: list[Any], samples: tuple[Any, Any]
) -> list[Array]:
    """The gradients' means over the ranks, by MPI, at these parameters."""
    import torch

    model = _network(nbytes)
    with torch.no_grad():
        for own, given in zip(model.parameters(), parameters, strict=True):
            own.copy_(given)
    _loss(model, samples).backward()
    gradients = [parameter.grad.numpy() / comm.size for parameter in model.parameters()]
    for gradient in gradients:
        comm.Allreduce(MPI.IN_PLACE, gradient)
    return gradients
