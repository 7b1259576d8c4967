"""Random operations of four groups, from two threads at once, some to be waited for later.

Then callbacks of futures call operations of their group, on ranks that come late in turn.

Usage: at_once.py SEED ROUNDS. Every thread draws the same operations on every rank.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from torch.nn.parallel import DistributedDataParallel

import hbmcomm.torch

SEED, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GROUPS = [dist.new_group() for _ in range(4)]
OPERATIONS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier")
LENGTHS = (1, 100, 5000, 200_000)
Op = dist.ReduceOp


def one(draw: random.Random, group: dist.ProcessGroup, later: bool) -> tuple[object, object]:
    """Start an operation; its work, or None, and a function that checks the result."""
    name, length, number = draw.choice(OPERATIONS), draw.choice(LENGTHS), draw.randrange(100)
    mine = torch.full((length,), float(number + RANK))
    total = sum(range(number, number + SIZE))
    if name == "all_reduce":
        work = dist.all_reduce(mine, group=group, async_op=later)
        return work, lambda: mine.eq(total).all()
    if name == "broadcast":
        root = draw.randrange(SIZE)
        work = dist.broadcast(mine, root, group=group, async_op=later)
        return work, lambda: mine.eq(number + root).all()
    if name == "all_gather":
        parts = [torch.empty(length) for _ in range(SIZE)]
        work = dist.all_gather(parts, mine, group=group, async_op=later)
        return work, lambda: all(parts[rank].eq(number + rank).all() for rank in range(SIZE))
    if name == "reduce_scatter":
        part = torch.empty(length)
        work = dist.reduce_scatter(part, [mine] * SIZE, group=group, async_op=later)
        return work, lambda: part.eq(total).all()
    return dist.barrier(group=group, async_op=later), lambda: True


def many(seed: int, groups: list[dist.ProcessGroup], failed: list[str]) -> None:
    draw = random.Random(seed)
    flying: list[tuple[object, object]] = []
    for number in range(ROUNDS):
        later = draw.random() < 0.7
        flying.append(one(draw, draw.choice(groups), later))
        while len(flying) > 8 or (flying and not later):
            work, check = flying.pop(0)
            if work is not None:
                work.wait()  # type: ignore[attr-defined]
            if not check():  # type: ignore[operator]
                failed.append(f"rank {RANK}, seed {seed}, operation {number}")


def start(number: float) -> tuple[dist.Work, torch.Tensor]:
    """An all_reduce with the number as its result, if every rank has the same operation next."""
    tensor = torch.full((3,), number)
    work = dist.all_reduce(tensor, Op.AVG, async_op=True)
    assert work is not None
    return work, tensor


@contextmanager
def one_comes_late(late: int) -> Iterator[None]:
    """That rank begins the block when all others have ended it: their workers wait for it."""
    flag, others = torch.empty(1), [rank for rank in range(SIZE) if rank != late]
    if late == RANK:
        for rank in others:
            dist.recv(flag, rank)
    yield
    if RANK in others:
        dist.send(flag, late)


def after_an_operation(late: int, call: Callable[[], object]) -> object:
    """The result of a call that a callback makes: on the worker, unless this rank comes late."""
    with one_comes_late(late):
        result = start(1.0)[0].get_future().then(lambda _: call())
    return result.wait()


def by_works() -> list[float]:
    (first, one), (second, two) = start(2.0), start(3.0)
    second.wait()
    first.wait()
    return [*one.tolist(), *two.tolist()]


def by_futures() -> list[float]:
    return [number for _ in range(2) for number in start(4.0)[0].get_future().wait()[0].tolist()]


def at_once() -> list[float]:
    """Without async_op, and by the bare operators."""
    numbers = torch.full((3,), 5.0)
    dist.all_reduce(numbers, Op.AVG)
    dist.barrier()
    torch.ops.hbmcomm.all_reduce_(numbers, "avg", hbmcomm.torch.handle())
    return numbers.tolist()


def attached_again() -> object:
    return start(6.0)[0].get_future().then(lambda _: at_once()).wait()


def refused() -> str:
    try:
        dist.destroy_process_group()
    except RuntimeError as error:
        return str(error)
    return "a callback shut down its group"


def callbacks_call_operations(late: int) -> None:
    assert after_an_operation(late, by_works) == [2.0] * 3 + [3.0] * 3
    assert after_an_operation(late, by_futures) == [4.0] * 6
    assert after_an_operation(late, at_once) == [5.0] * 3
    assert after_an_operation(late, attached_again) == [5.0] * 3


def their_place_is_where_the_future_was_taken(late: int, waits: bool) -> None:
    """All operations have the same length: in another order they give other numbers."""
    operations: dict[float, tuple[dist.Work, torch.Tensor]] = {}

    def call(*numbers: float) -> None:
        for number in numbers:
            operations[number] = start(number)

    def first_callback(_: object) -> None:
        if waits:  # for operations that the program has called before
            operations[1.0][0].wait()
            operations[2.0][0].get_future().wait()
        call(3.0, 4.0)

    with one_comes_late(late):
        call(0.0, 1.0, 2.0)
        futures = [operations[0.0][0].get_future().then(first_callback)]
        futures += [operations[1.0][0].get_future().then(lambda _: call(5.0, 6.0))]
        call(7.0)
    torch.futures.wait_all(futures)
    assert sorted(operations) == [float(number) for number in range(8)]
    for number, (work, tensor) in operations.items():
        work.wait()
        assert tensor.eq(number).all(), (number, tensor)


def powersgd_works_with_several_buckets() -> None:
    """Its callbacks wait for operations, while the program calls those of the next buckets."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(32, 32) for _ in range(4)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.005)
    state = power.PowerSGDState(None, start_powerSGD_iter=2)
    model.register_comm_hook(state, power.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    draw = torch.Generator().manual_seed(RANK)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = (model(torch.randn(16, 32, generator=draw)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    sent = weights.clone()
    dist.broadcast(sent, 0)
    assert torch.equal(sent, weights), "ranks have different weights"


problems: list[str] = []
threads = [
    threading.Thread(target=many, args=(SEED + i, GROUPS[2 * i : 2 * i + 2], problems))
    for i in range(2)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not problems, problems
work = dist.all_reduce(torch.ones(10), async_op=True)
total = work.get_future().then(lambda future: future.value()[0].sum()).wait()
assert total == 10 * SIZE and work.is_completed()
for rank in range(SIZE):
    callbacks_call_operations(rank)
    their_place_is_where_the_future_was_taken(rank, waits=False)
    their_place_is_where_the_future_was_taken(rank, waits=True)
powersgd_works_with_several_buckets()
if RANK:
    assert "a callback cannot shut down" in str(after_an_operation(0, refused))
else:
    after_an_operation(0, lambda: None)
dist.destroy_process_group()
print("right")
