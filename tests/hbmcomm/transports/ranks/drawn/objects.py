"""Lower-case calls, which pass Python objects, with results that are known.

`late_call` is legal wherever a call of MPI returns to a rank that needs nothing from the others,
as those of mpi4py do for small objects.
"""

from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.random import Generator

CALLS = (
    *("barrier", "bcast", "gather", "allgather", "scatter", "alltoall"),
    *("reduce", "allreduce", "scan", "exscan"),
)
LATE = ("bcast", "scatter", "gather")
LARGEST = 200_000  # bytes of an array in an object
LATE_TAG = 32001
SECONDS = 0.003  # by which a peer is late


def _content(seed: int, rank: int, to: int = 0, largest: int = LARGEST) -> dict[str, Any]:
    rng = np.random.default_rng([seed, rank, to])
    size = int(rng.integers(largest)) >> int(rng.integers(18))
    return {"rank": rank, "to": to, "data": rng.integers(0, 256, size, "u1").tobytes()}


def _same(result: Any, correct: Any, what: str) -> None:
    assert result == correct, f"{what} gives another object than was sent"


def object_call(comm: Any, rng: Generator) -> None:
    """One call; `rng` draws the same on all ranks.

    Raises:
        AssertionError: The result is wrong.
    """
    name, root = str(rng.choice(CALLS)), int(rng.integers(comm.size))
    seed = int(rng.integers(2**31))
    _call(comm, name, root, seed, LARGEST)


def _call(comm: Any, name: str, root: int, seed: int, largest: int) -> None:
    rank, ranks = comm.rank, range(comm.size)
    own = _content(seed, rank, largest=largest)
    at_root = rank == root
    match name:
        case "barrier":
            comm.barrier()
        case "bcast":
            _same(
                comm.bcast(own if at_root else None, root),
                _content(seed, root, largest=largest),
                name,
            )
        case "gather":
            everything = [_content(seed, peer, largest=largest) for peer in ranks]
            _same(comm.gather(own, root), everything if at_root else None, name)
        case "allgather":
            _same(comm.allgather(own), [_content(seed, peer) for peer in ranks], name)
        case "scatter":
            parts = [_content(seed, root, to, largest) for to in ranks] if at_root else None
            _same(comm.scatter(parts, root), _content(seed, root, rank, largest), name)
        case "alltoall":
            given = [_content(seed, rank, to) for to in ranks]
            _same(comm.alltoall(given), [_content(seed, peer, rank) for peer in ranks], name)
        case "reduce":
            total = sum((seed + peer) % 1000 for peer in ranks)
            _same(comm.reduce((seed + rank) % 1000, root=root), total if at_root else None, name)
        case "allreduce":
            _same(comm.allreduce([rank]), list(ranks), name)
        case "scan":
            _same(comm.scan([rank]), list(ranks[: rank + 1]), name)
        case "exscan":
            _same(comm.exscan([rank]), list(ranks[:rank]) or None, name)


def late_call(comm: Any, messages: MPI.Intracomm, rng: Generator) -> None:
    """A call after which a rank sends a message that a peer awaits before its own call.

    Args:
        messages: a communicator of the same ranks, for these messages.
    """
    name, root = str(rng.choice(LATE)), int(rng.integers(comm.size))
    seed = int(rng.integers(2**31))
    is_first = (comm.rank == root) == (name != "gather")
    peers = [root] if comm.rank != root else [peer for peer in range(comm.size) if peer != root]
    if not is_first:
        for peer in peers:
            messages.recv(source=peer, tag=LATE_TAG)
    _call(comm, name, root, seed, 64)
    if is_first:
        for peer in peers:
            messages.send(None, peer, LATE_TAG)
