"""DDP steps until a rank is killed: every other one gets an error that names a rank.

Usage: killed.py SECONDS RANK: that rank kills itself so long after its first step, at any point.
"""

import os
import signal
import sys
import threading
import time

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hbmcomm.torch  # noqa: F401

SECONDS, VICTIM = float(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("hbm")
RANK = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(500, 500), gradient_as_bucket_view=True)


def step() -> None:
    model(torch.ones(4, 500)).sum().backward()


step()
if RANK == VICTIM:
    threading.Timer(SECONDS, os.kill, (os.getpid(), signal.SIGKILL)).start()
began = time.monotonic()
try:
    while True:
        step()
except RuntimeError as error:
    assert "rank" in str(error), error
    print(f"{time.monotonic() - began - SECONDS:.1f} {error}".splitlines()[0])
