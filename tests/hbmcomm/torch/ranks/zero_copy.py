"""Gradients and parameters that are moved are in the arena, so that nothing is copied to move them.

A small network learns a noisy line on hbm and on gloo; DDP with two ranks adds two numbers in
either order, so that the losses are equal to the bit.
"""

import os
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import hbmcomm.torch
from tests.hbmcomm.ranks.refusal import refused

os.environ["DDP_DISABLE_COMM_MEM"] = "0"
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))


def losses(model: torch.nn.Module, steps: int = 30) -> list[float]:
    draw = torch.Generator().manual_seed(RANK)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    history = []
    for _ in range(steps):
        inputs = torch.randn(32, 8, generator=draw)
        due = inputs.sum(1, keepdim=True) + 0.1 * torch.randn(32, 1, generator=draw)
        loss = (model(inputs) - due).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def watched(name: str, moved: list[bool]) -> Any:
    """A call of torch.distributed that notes where its tensors are."""
    original = getattr(dist, name)

    def call(*args: Any, **named: Any) -> Any:
        every = (*args, *named.values())
        moved.extend(
            hbmcomm.torch.is_in_arena(arg) for arg in every if isinstance(arg, torch.Tensor)
        )
        return original(*args, **named)

    return mock.patch.object(dist, name, call)


on_hbm = DistributedDataParallel(network(), gradient_as_bucket_view=True)
curve = losses(on_hbm)
assert curve[-1] < curve[0] / 2, curve
assert all(hbmcomm.torch.is_in_arena(parameter.grad) for parameter in on_hbm.parameters())
gloo = losses(DistributedDataParallel(network(), process_group=GLOO))
assert curve == gloo if SIZE == 2 else torch.allclose(torch.tensor(curve), torch.tensor(gloo))

sharded = network()
for layer in (sharded[0], sharded[2], sharded):
    fully_shard(layer).set_allocate_memory_from_process_group_for_comm(True)
moved: list[bool] = []  # whether each tensor is in the arena; later its storage may be empty
if hasattr(dist, "all_gather_single"):  # what FSDP2 calls has other names since torch 2.13
    gather, scatter = "all_gather_single", "reduce_scatter_single"
else:
    gather, scatter = "all_gather_into_tensor", "reduce_scatter_tensor"
with watched(gather, moved), watched(scatter, moved):
    assert torch.allclose(torch.tensor(losses(sharded)), torch.tensor(curve), atol=1e-6)
assert len(moved) >= 2 * 2 * 30 and all(moved), moved

first = hbmcomm.torch.empty(1000)
address = first.data_ptr()
assert hbmcomm.torch.is_in_arena(first) and not hbmcomm.torch.is_in_arena(torch.empty(1000))
del first
assert hbmcomm.torch.empty(1000).data_ptr() == address, "freed memory is reused"
one, three = np.int64(1), torch.tensor(3)
for size in ((one,), (2, one), (three,), (2, three), ([2, one],), (range(2, 4),), ((),), (0,)):
    expected = torch.empty(*(tuple(part) if isinstance(part, range) else part for part in size))
    assert hbmcomm.torch.empty(*size).shape == expected.shape, size
for size, error in (((2, -1), RuntimeError), ((2.0,), TypeError), (([2, 3], 4), TypeError)):
    with refused(error):
        hbmcomm.torch.empty(*size)
dist.destroy_process_group()
print("right")
