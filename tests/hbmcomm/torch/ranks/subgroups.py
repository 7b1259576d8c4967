"""Groups of ranks on two hosts: what each consists of, and the same results as gloo's.

Started by hosts.py with hosts 0,0,1.
"""

import io
import logging

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hbmcomm.torch

said = io.StringIO()
log = logging.getLogger("hbmcomm.torch")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(said))
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo")
inside, across = dist.new_group([0, 1]), dist.new_group([0, 2])
if RANK == 0:
    assert said.getvalue().splitlines() == [
        "hbm: a process group of 2 + 1 ranks by shared memory, and gloo between 2 hosts",
        "hbm: a process group of 2 ranks by shared memory",
        "hbm: a process group of 1 + 1 ranks by shared memory, and gloo between 2 hosts",
    ], said.getvalue()

ones = {group: torch.ones(3) for group in (None, inside, across)}
works = [dist.all_reduce(tensor, group=group, async_op=True) for group, tensor in ones.items()]
for work in works:
    if work is not None:  # this rank is in the group
        work.wait()
assert ones[None].eq(3).all()
assert ones[inside].eq(2 if RANK < 2 else 1).all()
assert ones[across].eq(2 if RANK != 1 else 1).all()

numbers = torch.randn(300_001, generator=torch.Generator().manual_seed(RANK))
total, theirs = numbers.clone(), numbers.clone()
torch.ops.hbmcomm.all_reduce_(total, "sum", hbmcomm.torch.handle())
dist.all_reduce(theirs, group=GLOO)
assert torch.allclose(total, theirs, atol=1e-5)
sent = total.clone()
dist.broadcast(sent, 2, group=GLOO)
assert torch.equal(sent, total), "ranks have different bits"
if RANK != 1:
    short = torch.full((3,), RANK, dtype=torch.int16)  # a type that gloo lacks
    torch.ops.hbmcomm.all_reduce_(short, "max", hbmcomm.torch.handle(across))
    assert short.eq(2).all()


def losses(group: dist.ProcessGroup | None) -> torch.Tensor:
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(8, 1), process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    draw = torch.Generator().manual_seed(RANK)
    history = []
    for _ in range(10):
        inputs = torch.randn(32, 8, generator=draw)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return torch.tensor(history)


curve = losses(None)
assert curve[-1] < curve[0] / 2, curve
assert torch.allclose(curve, losses(GLOO))
dist.destroy_process_group()
print("right")
