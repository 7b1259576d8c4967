"""Rank program: ranks that allocate a strict kind never do so at once; one of them has too little.

Run with MEMKIND_HBW_NODES=0, which makes hbw strict memory on node 0.
"""

import time
from itertools import pairwise
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.measure.buffers import Unavailable, make_pool

COMM = MPI.COMM_WORLD
spans: list[tuple[float, float]] = []
roomy = hbmcomm.Communicator.empty


def slow(self: hbmcomm.Communicator, *args: Any) -> Any:
    began = time.monotonic()
    time.sleep(0.05)
    try:
        return roomy(self, *args)
    finally:
        spans.append((began, time.monotonic()))


def too_little(self: hbmcomm.Communicator, *args: Any) -> Any:
    slow(self, *args)
    raise hbmcomm.OutOfMemory("hbw: the node is full")


def overlaps() -> int:
    """Pairs of spans, of whatever ranks, that share a moment; the clock is one for a machine."""
    every = sorted(span for rank in COMM.allgather(spans) for span in rank)
    spans.clear()
    return sum(end > begin for (_, end), (begin, _) in pairwise(every))


def pool(kind: str) -> None:
    make_pool(COMM, (kind, "local", "arena"), ["mpi"], "float32", (1000, 1000), cpu=0)


hbmcomm.Communicator.empty = slow  # type: ignore[method-assign]
pool("hbw")
assert overlaps() == 0
pool("hbw_preferred")
assert overlaps() > 0, "kinds that may spill need no turns"

if COMM.rank == 1:
    hbmcomm.Communicator.empty = too_little  # type: ignore[method-assign]
try:
    pool("hbw")
except Unavailable as reason:
    assert "the node is full" in str(reason)
else:
    raise AssertionError("a rank without memory was passed over")
