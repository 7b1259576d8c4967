"""Ranks that see different boots of a system, as on several hosts, get a group of gloo.

Usage: hosts.py PATH: what the warning says goes there.
"""

import os
import sys
import warnings
from pathlib import Path

import torch
from torch import distributed as dist

import hbmcomm.torch
from hbmcomm.memory.topology import procfs

RANK = int(os.environ["RANK"])
procfs.boot = lambda _: 1 + RANK
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    dist.init_process_group("hbm")
said = [str(each.message) for each in caught if "gloo" in str(each.message)]
assert bool(said) == (RANK == 0)
if said:
    Path(sys.argv[1]).write_text(said[0])
tensor = torch.ones(3)
dist.all_reduce(tensor)
assert tensor.eq(dist.get_world_size()).all()
try:
    hbmcomm.torch.handle()
except ValueError as error:
    assert "this one is of gloo" in str(error)
    print("right")
