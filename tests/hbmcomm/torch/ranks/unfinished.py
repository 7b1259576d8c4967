"""Rank 0 ends with an operation on its way that the other rank never joins."""

import os
import time

import torch
from torch import distributed as dist

import hbmcomm.torch  # noqa: F401

dist.init_process_group("hbm")
dist.barrier()
if dist.get_rank() == 0:
    tensor = torch.ones(100_000)
    work = dist.all_reduce(tensor, async_op=True)
    print("right", flush=True)
else:
    time.sleep(4)
    os._exit(0)
