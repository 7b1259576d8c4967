"""Groups that torch wraps for TORCH_DISTRIBUTED_DEBUG=DETAIL are as good as others.

What is no group of backend hbm is refused, wrapped or not.
"""

import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"

import torch
from torch import distributed as dist

import hbmcomm.torch
from tests.hbmcomm.ranks.refusal import refused

with refused(ValueError, "no default process group; call"):
    hbmcomm.torch.handle()
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
assert hasattr(dist.group.WORLD._get_backend(torch.device("cpu")), "wrapped_pg"), "torch wraps none"
tensor = hbmcomm.torch.empty(4).fill_(RANK + 1)
assert hbmcomm.torch.is_in_arena(tensor) and not hbmcomm.torch.is_in_arena(torch.ones(4))
torch.ops.hbmcomm.all_reduce_(tensor, "sum", hbmcomm.torch.handle())
dist.all_reduce(tensor)
assert tensor.eq(SIZE * SIZE * (SIZE + 1) / 2).all()
pair = dist.new_group()
assert hbmcomm.torch.handle(pair) != hbmcomm.torch.handle(dist.group.WORLD)
assert hbmcomm.torch.is_in_arena(hbmcomm.torch.empty(3, group=pair), pair)

gloo = dist.new_group(backend="gloo")
with refused(ValueError, "serves groups of backend hbm; this one is of gloo: create it with"):
    hbmcomm.torch.handle(gloo)
with refused(RuntimeError, "gloo"):
    hbmcomm.torch.empty(4, group=gloo)
alone = dist.new_group([0])
if RANK:
    with refused(ValueError, "is not a process group that this process is in"):
        hbmcomm.torch.empty(4, group=alone)

# The arena's tensors grow as torch's do, and stay in the arena.
grown = hbmcomm.torch.empty(3).copy_(torch.arange(3.0))
other = hbmcomm.torch.empty(1000)
assert grown.resize_(100_000)[:3].tolist() == [0, 1, 2]
assert grown.shape == (100_000,) and hbmcomm.torch.is_in_arena(grown)
assert not set(range(grown.data_ptr(), grown.data_ptr() + grown.nbytes)) & {other.data_ptr()}
dist.all_reduce(grown.fill_(1))
assert grown.eq(SIZE).all()
address = grown.data_ptr()
assert grown.resize_(2, 2).data_ptr() == address and hbmcomm.torch.empty(0).resize_(5).numel() == 5
with refused(torch.OutOfMemoryError, "the arena has no"):
    grown.resize_(2**44)
del grown, other
addresses = {hbmcomm.torch.empty(1000).resize_(1_000_000).data_ptr() for _ in range(30)}
assert len(addresses) < 4, "the memory of a resized tensor is freed"
dist.destroy_process_group()
print("right")
