"""hbmcomm.torch.memory: large tensors of the block are in the kind, all others in torch's memory.

Run as one process, with MEMKIND_HBW_NODES=0: node 0 plays the part of HBM.
"""

import threading

import torch

import hbmcomm
import hbmcomm.torch
from tests.hbmcomm.ranks.refusal import refused

before = torch.ones(100_000)
with hbmcomm.torch.memory("hbw") as kind:
    assert kind.name == "hbw" and kind.nodes == (0,)
    model = torch.nn.Linear(512, 512)
    small = torch.ones(10)
    elsewhere: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: elsewhere.append(torch.ones(100_000)))
    thread.start()
    thread.join()
    with hbmcomm.torch.memory("regular"):
        regular = torch.ones(100_000)
    again = torch.ones(100_000)
after = torch.ones(100_000)
kind_of = hbmcomm.torch.kind_of
assert kind_of(model.weight) == kind_of(again) == "hbw"
assert kind_of(regular) == "regular"
assert [kind_of(tensor) for tensor in (before, small, elsewhere[0], after)] == [None] * 4
assert hbmcomm.placement(model.weight.detach().numpy()) == {0: model.weight.nbytes}
model(torch.ones(3, 512)).sum().backward()
for _ in range(50):  # freed memory is reused
    with hbmcomm.torch.memory("hbw"):
        torch.empty(2**26, dtype=torch.uint8).fill_(1)
with refused(torch.OutOfMemoryError, "hbw"), hbmcomm.torch.memory("hbw"):
    torch.empty(2**44, dtype=torch.uint8)  # 16 TiB
with refused(ValueError), hbmcomm.torch.memory("nvram"):
    pass
print("right")
