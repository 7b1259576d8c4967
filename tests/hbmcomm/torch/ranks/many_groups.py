"""A group that was destroyed leaves no descriptor, thread or socket; each may have had 20 of them.

Usage: many_groups.py GROUPS DESCRIPTORS: the process may have so many open at once.
"""

import gc
import os
import resource
import sys
import threading
import time
from pathlib import Path

import torch
from torch import distributed as dist

import hbmcomm.torch

GROUPS, DESCRIPTORS = map(int, sys.argv[1:])
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PORT = int(os.environ["MASTER_PORT"])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, most))


def left() -> tuple[int, int]:
    """How many descriptors and threads this process has."""
    gc.collect()
    open_files, threads = Path("/proc/self/fd"), Path("/proc/self/task")
    return len([*open_files.iterdir()]), len([*threads.iterdir()])


def check_left(most: tuple[int, int]) -> None:
    """Fail if more stay than so many; other threads may still close some."""
    until = time.monotonic() + 10
    while any(own > allowed for own, allowed in zip(left(), most, strict=True)):
        assert time.monotonic() < until, (most, left())
        time.sleep(0.01)


def use(group: dist.ProcessGroup) -> None:
    """Start all that a group has: its worker, the operators' memory of it, messages of gloo."""
    tensor = hbmcomm.torch.empty(1000, group=group).fill_(1)
    dist.all_reduce(tensor, group=group)
    dist.all_reduce(tensor, group=group, async_op=True).wait()
    torch.ops.hbmcomm.all_reduce_(tensor, "sum", hbmcomm.torch.handle(group))
    assert tensor.eq(SIZE**3).all()
    message = torch.ones(3)
    other = dist.get_global_rank(group, 1 - RANK)
    dist.send(message, other, group) if RANK else dist.recv(message, other, group)


def cycle(store: dist.Store) -> None:
    dist.init_process_group("hbm", store=store, rank=RANK, world_size=SIZE)
    use(dist.group.WORLD)
    use(dist.new_group())  # is destroyed with all others
    dist.barrier()
    dist.destroy_process_group()


store = dist.TCPStore("127.0.0.1", PORT, SIZE, RANK == 0)
cycle(dist.PrefixStore("first", store))
after_one = left()
for number in range(4):
    cycle(dist.PrefixStore(str(number), store))
check_left(after_one)

for _ in range(4):  # as where the program keeps a group, and with it the store of env://
    cycle(dist.PrefixStore("again", store))
check_left(after_one)

dist.init_process_group("hbm", store=dist.PrefixStore("many", store), rank=RANK, world_size=SIZE)
before = left()
for _ in range(GROUPS):
    group = dist.new_group()
    dist.all_reduce(torch.ones(3), group=group)
    handle = hbmcomm.torch.handle(group)
    dist.destroy_process_group(group)
del group
dist.barrier()
check_left(before)
try:
    torch.ops.hbmcomm.all_reduce_(torch.ones(3), "sum", handle)
except ValueError as error:
    assert f"no process group has the handle {handle}" in str(error), error
else:
    raise AssertionError("a group that is gone was found")
assert threading.active_count() == 1
dist.destroy_process_group()
print("right")
