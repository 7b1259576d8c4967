"""Rank program: sums of random floats are the sequential sums in rank order, bit for bit.

Every rank computes them with NumPy from all ranks' seeds, for every size, dtype and place of the
memory. Prints one "digest" line per rank, equal on all ranks and in every run.
Usage: same_bits.py TRANSPORT
"""

import functools
import hashlib
import sys
from typing import Any

import numpy as np
from drawn.calls import HALVES, dtype_of, has_bfloat16
from drawn.expected import combine
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import say

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
COUNTS = (1, 7, 64, 1000, 2049, 16385, 100_003, 700_001)
DTYPES = ("f", "d", "g", "F", "D", *HALVES)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 5e-324, 3e38, -1.5)


@functools.cache
def magnitudes(rank: int, count: int) -> np.ndarray:
    """Numbers of all magnitudes, so that another order of summation shows."""
    rng = np.random.default_rng([rank, count])
    return rng.standard_normal(count) * 2.0 ** rng.integers(-9, 9, count)


def random(rank: int, count: int, dtype: str) -> np.ndarray:
    """Numbers that are equal in every dtype, as far as it holds them."""
    values = magnitudes(rank, count)
    if dtype in "FD":
        return (values + 1j * values[::-1]).astype(dtype)
    return values.astype(dtype_of(dtype))


def special(rank: int, count: int, dtype: str) -> np.ndarray:
    """Infinities, no numbers, zeros of either sign and the smallest there are."""
    with np.errstate(over="ignore"):
        drawn = np.random.default_rng([rank, count]).choice(SPECIAL, count)
        return drawn.astype(dtype_of(dtype))


def bits(a: np.ndarray) -> bytes:
    """Without the idle bytes of a long double."""
    if a.dtype.char == "g":
        return a.view("u1").reshape(-1, a.itemsize)[:, :10].tobytes()
    return a.tobytes()


def reductions(comm: Any, make: Any, mine: np.ndarray, op: MPI.Op) -> dict[str, bytes]:
    """The bits that each reducing call gives this rank, from memory that `make` makes."""
    count = mine.size
    given, taken = make(count, mine.dtype), make(count, mine.dtype)
    given[:] = mine
    comm.Allreduce(given, taken, op)
    bits_of = {"Allreduce": bits(taken)}
    taken[:] = mine
    comm.Allreduce(MPI.IN_PLACE, taken, op)
    bits_of["Allreduce in place"] = bits(taken)
    for root in range(RANKS):
        taken[:] = 0
        comm.Reduce(given, taken if root == RANK else None, op, root)
        if root == RANK:
            bits_of["Reduce"] = bits(taken)
    blocks, block = make(RANKS * count, mine.dtype), make(count, mine.dtype)
    blocks.reshape(RANKS, count)[:] = mine
    comm.Reduce_scatter_block(blocks, block, op)
    bits_of["Reduce_scatter_block"] = bits(block)
    return bits_of


def sums_are_sequential(comm: Any, dtype: str, digest: Any) -> None:
    for count in COUNTS:
        operands = [random(rank, count, dtype) for rank in range(RANKS)]
        wanted = bits(combine(operands, "SUM", dtype in HALVES))
        for make in (comm.empty, np.empty):
            for name, actual in reductions(comm, make, operands[RANK], MPI.SUM).items():
                assert actual == wanted, f"{name} of {count} {dtype} is not the sum in rank order"
        digest.update(wanted)


def special_values_give_the_same_bits_everywhere(comm: Any, dtype: str, digest: Any) -> None:
    for name in ("SUM", "MAX", "MIN", "PROD"):
        for count in (9, 3000, 300_000):
            mine, own = special(RANK, count, dtype), set[bytes]()
            for make in (comm.empty, np.empty):
                own |= set(reductions(comm, make, mine, getattr(MPI, name)).values())
            everywhere = own.union(*WORLD.allgather(own))
            assert len(everywhere) == 1, f"{name} of {count} {dtype} depends on the caller"
            digest.update(everywhere.pop())


if __name__ == "__main__":
    summary = hashlib.sha256()
    with Communicator(WORLD, "regular", sys.argv[1]) as ours, np.errstate(all="ignore"):
        for dtype in DTYPES:
            if dtype != "bfloat16" or has_bfloat16():
                sums_are_sequential(ours, dtype, summary)
        for dtype in ("f", "d", "e"):
            special_values_give_the_same_bits_everywhere(ours, dtype, summary)
    say(f"digest {summary.hexdigest()}")
