"""One rank cannot build the C++ part: every rank gets its error, and none waits for the other."""

import os

from torch import distributed as dist

import hbmcomm.torch  # noqa: F401
from hbmcomm.torch import build

RANK = int(os.environ["RANK"])


def fail() -> None:
    raise build.BuildFailed("no compiler")


if RANK == 1:
    build.load = fail
try:
    dist.init_process_group("hbm")
except build.BuildFailed as error:
    print(error)
