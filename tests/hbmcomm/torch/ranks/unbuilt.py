"""One rank cannot build the C++ part: every rank gets its error, and none waits for the other."""

import os
import time

from torch import distributed as dist

import hbmcomm.torch  # noqa: F401
from hbmcomm.torch import build

RANK = int(os.environ["RANK"])


def fail() -> None:
    raise build.BuildFailed("no compiler")


if RANK == 1:
    build.load = fail
    read = dist.PrefixStore.multi_get

    def read_late(store: dist.Store, keys: list[str]) -> list[bytes]:
        """Rank 0 serves the store, and has its error by then."""
        time.sleep(0.5)
        return list(read(store, keys))

    dist.PrefixStore.multi_get = read_late
try:
    dist.init_process_group("hbm")
except build.BuildFailed as error:
    print(error)
