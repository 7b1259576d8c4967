"""Random operations of four groups, from two threads at once, some to be waited for later.

Usage: at_once.py SEED ROUNDS. Every thread draws the same operations on every rank.
"""

import random
import sys
import threading

import torch
from torch import distributed as dist

import hbmcomm.torch  # noqa: F401

SEED, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GROUPS = [dist.new_group() for _ in range(4)]
OPERATIONS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier")
LENGTHS = (1, 100, 5000, 200_000)


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


problems: list[str] = []
threads = [
    threading.Thread(target=many, args=(SEED + each, GROUPS[2 * each : 2 * each + 2], problems))
    for each in range(2)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not problems, problems
work = dist.all_reduce(torch.ones(10), async_op=True)
total = work.get_future().then(lambda future: future.value()[0].sum()).wait()
assert total == 10 * SIZE and work.is_completed()
dist.destroy_process_group()
print("right")
