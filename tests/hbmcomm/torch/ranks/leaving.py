"""Rank 0 leaves a group while rank 1, which is slow, still reads its memory.

Usage: leaving.py WAY LIBRARY. Rank 1 prints "right" where its result is, and how many of its
accesses were slow. LIBRARY makes it slow where it stores what rank 0 has reduced.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist

import hbmcomm.torch

sys.path.append(str(Path(__file__).parents[2] / "transports/ranks"))
from drawn import pages

_, WAY, LIBRARY = sys.argv
COUNT = 64 * 1024  # of float32: 256 KiB, in private memory
SLOW = 1.2  # seconds, half of them in the half that rank 0 reduces
FOUR_PARTS = 3  # the seed by which make_slow() divides the memory so

pages.install(LIBRARY)
memory = pages.Pages(4 * COUNT)
tensor = torch.from_numpy(memory.array.view("f4"))
dist.init_process_group("hbm")
RANK = dist.get_rank()
group = dist.new_group()
dist.all_reduce(tensor, group=group)  # all buffers exist now
tensor.fill_(1.0 + RANK)
dist.barrier()
if RANK:
    memory.make_slow(np.random.default_rng(FOUR_PARTS), SLOW)
    memory.make_read_only()
    try:
        dist.all_reduce(tensor, group=group)
        print("right" if bool((tensor == 3).all()) else "wrong", pages.counts()[0], flush=True)
    except dist.DistBackendError as error:  # the rank died: an error is right, wrong data is not
        print(error, flush=True)
    os._exit(0)

dist.all_reduce(tensor, group=group)
if WAY == "sys.exit":
    sys.exit()
elif WAY == "exception":
    raise SystemExit("an error that ends the program")
elif WAY == "signal":
    os.kill(os.getpid(), signal.SIGKILL)
dist.destroy_process_group(group)
for _ in range(8):  # what rank 0 may be given now must not be what rank 1 reads
    own = dist.new_group([0], use_local_synchronization=True)
    dist.all_reduce(torch.full((COUNT,), 7.0), group=own)
    hbmcomm.torch.empty(COUNT).fill_(7.0)
time.sleep(SLOW)
os._exit(0)
