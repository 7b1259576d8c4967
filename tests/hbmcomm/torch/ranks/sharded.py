"""On a mesh of 2 x 2 ranks, DTensor, tensor parallelism and FSDP2 give what one process gives."""

import torch
from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import hbmcomm.torch

STEPS = 5


def network() -> torch.nn.Module:
    torch.manual_seed(2)
    layers = [torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.Linear(32, 6)]
    return torch.nn.Sequential(*layers).double()


def losses(model: torch.nn.Module, share: slice) -> list[float]:
    """The mean of all processes' losses after each step; each takes its share of the inputs."""
    draw = torch.Generator().manual_seed(3)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    means = []
    for _ in range(STEPS):
        inputs = torch.randn(8, 12, generator=draw, dtype=torch.float64)
        loss = model(inputs[share]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        means.append(total.item())
    return means


def dtensors_take_every_placement(mesh: DeviceMesh) -> None:
    whole = torch.arange(7 * 5, dtype=torch.float64).reshape(7, 5)  # 7 and 5: uneven shards
    placements = (Replicate(), Shard(0), Shard(1))
    for first in placements:
        for second in placements:
            start = distribute_tensor(whole, mesh, (first, second))
            for last in placements:
                moved = start.redistribute(mesh, (last, Replicate()))
                assert torch.equal(moved.full_tensor(), whole), (first, second, last)
    one = mesh["model"]
    partial = DTensor.from_local(whole, one, [Partial()])
    for placement in placements:
        summed = partial.redistribute(one, [placement])
        assert torch.equal(summed.full_tensor(), whole * one.size()), placement
    left = distribute_tensor(whole, one, [Shard(1)])
    product = left @ distribute_tensor(whole.t(), one, [Shard(0)])
    assert torch.allclose(product.full_tensor(), whole @ whole.t())


def training_gives_the_losses_of_one_process(mesh: DeviceMesh) -> None:
    due = torch.tensor(losses(network(), slice(None)))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(network(), mesh["model"], plan)
    curve = losses(model, slice(None))
    assert torch.allclose(torch.tensor(curve), due, rtol=1e-9), (curve, due)
    model = parallelize_module(network(), mesh["model"], plan)
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh["data"])
    rank = mesh["data"].get_local_rank()
    curve = losses(model, slice(4 * rank, 4 * rank + 4))
    assert torch.allclose(torch.tensor(curve), due, rtol=1e-9), (curve, due)


assert hbmcomm.torch  # imported to register the backend
dist.init_process_group("hbm")
whole_mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
assert {dist.get_backend(whole_mesh.get_group(dim)) for dim in ("data", "model")} == {"hbm"}
dtensors_take_every_placement(whole_mesh)
training_gives_the_losses_of_one_process(whole_mesh)
dist.destroy_process_group()
print("right")
