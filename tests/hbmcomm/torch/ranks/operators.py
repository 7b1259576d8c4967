"""torch.ops.hbmcomm: the same results as torch.distributed's, clear refusals, torch.compile."""

from typing import Any

import torch
from torch import distributed as dist
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import hbmcomm.torch
from tests.hbmcomm.ranks.refusal import refused

dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GROUP = hbmcomm.torch.handle()
ops = torch.ops.hbmcomm

mine = hbmcomm.torch.empty(6).fill_(RANK + 1)
ops.all_reduce_(mine, "sum", GROUP)
assert mine.eq(SIZE * (SIZE + 1) / 2).all()
ops.all_reduce_(mine.fill_(RANK), "avg", GROUP)
assert mine.eq((SIZE - 1) / 2).all()
ops.broadcast_(mine.fill_(RANK), SIZE - 1, GROUP)
assert mine.eq(SIZE - 1).all()
every = torch.empty(2 * SIZE)
ops.all_gather_into_(every, torch.full((2,), float(RANK)), GROUP)
assert every.tolist() == [float(rank) for rank in range(SIZE) for _ in range(2)]
part = torch.empty(2)
ops.reduce_scatter_into_(part, torch.arange(2.0 * SIZE), "max", GROUP)
assert part.tolist() == [2.0 * RANK, 2.0 * RANK + 1]
swapped = torch.empty(SIZE)
ops.all_to_all_into_(swapped, torch.full((SIZE,), float(RANK)), GROUP)
assert swapped.tolist() == [float(rank) for rank in range(SIZE)]


class Marked(torch.Tensor):
    """A subclass; torch hands its calls to __torch_function__."""


def noted(_mode: Any, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
    seen.append(str(function))
    return function(*args, **(kwargs or {}))


class Names(TorchFunctionMode):
    """Notes what is called."""

    __torch_function__ = noted


class Dispatched(TorchDispatchMode):
    """Notes what is dispatched."""

    __torch_dispatch__ = noted


# Calls that the binding for plain tensors and arguments by position leaves to torch's own.
seen: list[str] = []
weight = torch.nn.Parameter(torch.ones(2))
ops.all_reduce_(mine.fill_(RANK + 1), group=GROUP, op="max")
assert mine.eq(SIZE).all()
ops.all_reduce_(torch.ones(2).as_subclass(Marked), "sum", GROUP)
ops.all_reduce_(weight.data, "sum", GROUP)
ops.all_reduce_(weight, "max", GROUP)
assert weight.eq(SIZE).all()
for mode in (Names(), Dispatched()):
    with mode:
        ops.all_reduce_(mine.fill_(1), "sum", GROUP)
assert mine.eq(SIZE).all()
assert sum("hbmcomm.all_reduce_" in name for name in seen) == 2, seen

gloo = dist.new_group(backend="gloo")
odd = torch.ones(SIZE + 1)
for call, words in (
    (lambda: ops.all_reduce_(mine, "mean", GROUP), "no reduction is called mean"),
    (lambda: ops.broadcast_(mine, SIZE, GROUP), f"no rank {SIZE} in a group of {SIZE} ranks"),
    (lambda: ops.broadcast_(mine, -1, GROUP), "no rank -1"),
    (lambda: ops.all_reduce_(mine, "sum", 99), "no process group has the handle 99"),
    (lambda: ops.all_reduce_(torch.ones(3, 3).t()[1:], "sum", GROUP), "contiguous"),
    (lambda: ops.all_gather_into_(every, torch.ones(3), GROUP), f"not {SIZE} times 3"),
    (lambda: ops.all_to_all_into_(every, every.int(), GROUP), "of one type and length"),
    (lambda: ops.all_to_all_into_(every, every[:SIZE], GROUP), "of one type and length"),
    (lambda: ops.all_to_all_into_(odd, odd.clone(), GROUP), "a multiple of the ranks"),
    (lambda: ops.all_reduce_(mine, "sum"), "missing value for argument 'group'"),
    (lambda: ops.all_reduce_(mine, "sum", 2**64), "'group'"),
    (lambda: ops.all_reduce_(mine, 3, GROUP), "'op'"),
    (lambda: hbmcomm.torch.handle(gloo), "this one is of gloo"),
):
    with refused((ValueError, RuntimeError), words):
        call()


def step(tensor: torch.Tensor) -> torch.Tensor:
    doubled = tensor * 2
    torch.ops.hbmcomm.all_reduce_(doubled, "sum", GROUP)
    return doubled + 1


compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
assert compiled(torch.ones(5)).eq(2 * SIZE + 1).all()
torch.library.opcheck(ops.broadcast_.default, (mine, 0, GROUP))
dist.destroy_process_group()
print("right")
