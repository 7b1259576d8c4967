"""How a wait ends when a rank does not come: by the timeout, or soon after the rank has died.

Usage: ends.py late|dead|left
"""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
from torch import distributed as dist

import hbmcomm.torch  # noqa: F401

HOW = sys.argv[1]
dist.init_process_group("hbm")
RANK, SIZE = dist.get_rank(), dist.get_world_size()
group = dist.new_group(timeout=timedelta(seconds=1))
dist.all_reduce(torch.ones(3), group=group)
dist.barrier()
absent = RANK == SIZE - 1
if absent and HOW == "dead":
    os.kill(os.getpid(), signal.SIGKILL)
if absent:
    if HOW == "left":
        dist.destroy_process_group(group)
    time.sleep(3)
    os._exit(0)
began = time.monotonic()
try:
    work = dist.all_reduce(torch.ones(100_000), group=group, async_op=RANK % 2 == 1)
    if work is not None:
        work.wait()
except dist.DistBackendError as error:
    print(f"{time.monotonic() - began:.1f}", error)
