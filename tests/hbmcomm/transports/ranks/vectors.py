"""Rank program: calls whose blocks differ in length are mpi4py's, and are read in C.

Counts and displacements are drawn; every spelling that programs use is tried, with gaps between
blocks and with MPI.IN_PLACE.
"""

import gc
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI
from numpy.random import Generator
from numpy.typing import NDArray

from hbmcomm import CallMismatch, Communicator
from hbmcomm.transports.direct import Direct
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
TYPES = {"f4": MPI.FLOAT, "f8": MPI.DOUBLE, "i4": MPI.INT, "u1": MPI.UNSIGNED_CHAR}
MOST = (2_000, 60_000)  # entries of a block: most go through slots, or none
Array = NDArray[Any]
Layout = tuple[list[int], list[int], int]
"""Counts, displacements, and entries of the whole buffer."""

direct = Communicator(WORLD, "regular", "direct")
SPELLINGS: tuple[Callable[[Array, Layout, MPI.Datatype], Any], ...] = (
    lambda buffer, of, _: [buffer, (of[0], of[1])],
    lambda buffer, of, kind: [buffer, (of[0], of[1]), kind],
    lambda buffer, of, kind: [buffer, of[0], of[1], kind],
    lambda buffer, of, kind: (buffer, (tuple(of[0]), tuple(of[1])), kind),
    lambda buffer, of, kind: [buffer, np.array(of[0], "i8"), np.array(of[1], "i4"), kind],
    lambda buffer, of, kind: [memoryview(buffer), (of[0], of[1]), kind],
    lambda buffer, of, _: [memoryview(buffer), (of[0], of[1])],
)


def layout(counts: Sequence[int], gap: int) -> Layout:
    displacements = [sum(counts[:block]) + gap * block for block in range(len(counts))]
    return list(counts), displacements, sum(counts) + gap * len(counts)


def filled(entries: int, dtype: str) -> Array:
    return (np.arange(entries) * 7 % 100 + RANK).astype(dtype)


def call_each(comm: Any, rng: Generator, dtype: str, spell: Callable[..., Any]) -> list[Array]:
    """What each call leaves in its buffer; all ranks draw the same."""
    most = MOST[int(rng.integers(2))]
    lengths = [[int(length) for length in row] for row in rng.integers(0, most, (RANKS, RANKS))]
    gap, root, kind = int(rng.integers(3)), int(rng.integers(RANKS)), TYPES[dtype]
    in_place = bool(rng.integers(2))
    to_all = layout(lengths[RANK], gap)
    from_all = layout([row[RANK] for row in lengths], gap)
    listed = layout(lengths[0], gap)
    own, at = listed[0][RANK], listed[1][RANK]
    results = [np.full(size, 9, dtype) for size in (from_all[2], listed[2], listed[2], own)]

    comm.Alltoallv(spell(filled(to_all[2], dtype), to_all, kind), spell(results[0], from_all, kind))
    mine: Any = filled(own, dtype)
    results[1][at : at + own] = mine
    results[2][at : at + own] = mine
    comm.Allgatherv(MPI.IN_PLACE if in_place else mine, spell(results[1], listed, kind))
    at_root = root == RANK
    sent = MPI.IN_PLACE if in_place and at_root else mine
    comm.Gatherv(sent, spell(results[2], listed, kind) if at_root else None, root)
    whole = filled(listed[2], dtype)
    taken = MPI.IN_PLACE if in_place and at_root else results[3]
    comm.Scatterv(spell(whole, listed, kind) if at_root else None, taken, root)
    return [*results, whole]


@promise
def every_spelling_is_read_in_c_and_gives_the_results_of_mpi4py() -> None:
    def refuse(self: Direct, status: int, name: str, *_: object) -> None:
        raise AssertionError(f"{name} went through Python, for status {status}")

    for seed in range(60):
        spell, dtype = SPELLINGS[seed % len(SPELLINGS)], list(TYPES)[seed % len(TYPES)]
        with mock.patch.object(Direct, "_again", refuse):
            ours = call_each(direct, np.random.default_rng(seed), dtype, spell)
        theirs = call_each(WORLD, np.random.default_rng(seed), dtype, spell)
        for one, other in zip(ours, theirs, strict=True):
            assert np.array_equal(one, other), f"{dtype}, seed {seed}"


@promise
def a_rank_alone_takes_no_more_than_its_block() -> None:
    alone = Communicator(MPI.COMM_SELF, "regular", "direct")
    for seed, spell in enumerate(SPELLINGS):
        received = np.full(9, 7, "i4")
        sent_at, received_at = ([3], [seed + 1], 12), ([3], [2], 9)
        sent = np.arange(12, dtype="i4")
        alone.Alltoallv(spell(sent, sent_at, MPI.INT), spell(received, received_at, MPI.INT))
        assert received.tolist() == [7, 7, *range(seed + 1, seed + 4), 7, 7, 7, 7]
    alone.Free()


@promise
def a_request_keeps_what_its_call_needs() -> None:
    def refuse(self: Direct, status: int, name: str, *_: object) -> None:
        raise AssertionError(f"{name} went through Python, for status {status}")

    counts = [1000 * (rank + 1) for rank in range(RANKS)]
    of = layout(counts, 1)
    received = np.zeros(of[2], "f8")
    with mock.patch.object(Direct, "_starting", refuse):
        for value in range(20):
            request = direct.Iallgatherv(
                np.full(counts[RANK], RANK + value, "f8"),
                [received, list(of[0]), list(of[1]), TYPES["f8"]],
            )
            gc.collect()
            request.Wait()
            for rank, (count, at) in enumerate(zip(*of[:2], strict=True)):
                assert (received[at : at + count] == rank + value).all()


@promise
def in_place_a_rank_may_have_no_block_of_its_own() -> None:
    """MPI.IN_PLACE exports a buffer of no bytes, which is not what this rank sends."""
    counts = [3 * (rank != RANK) + 2 * abs(RANK - rank) for rank in range(RANKS)]
    of = layout(counts, 1)
    for spell in SPELLINGS:
        ours, theirs = filled(of[2], "u1"), filled(of[2], "u1")
        direct.Alltoallv(MPI.IN_PLACE, spell(ours, of, MPI.BYTE))
        WORLD.Alltoallv(MPI.IN_PLACE, [theirs, of[0], of[1], MPI.BYTE])
        assert np.array_equal(ours, theirs)
        direct.Ialltoallv(MPI.IN_PLACE, spell(ours, of, MPI.BYTE)).Wait()
        WORLD.Alltoallv(MPI.IN_PLACE, [theirs, of[0], of[1], MPI.BYTE])
        assert np.array_equal(ours, theirs)


@promise
def counts_of_a_mapping_are_those_of_its_ranks() -> None:
    counts = {rank: RANKS - 1 - rank for rank in range(RANKS)}
    into, into_theirs = np.zeros(RANKS**2, "i4"), np.zeros(RANKS**2, "i4")
    own, whole = filled(counts[RANK], "i4"), filled(sum(counts.values()), "i4")
    for comm, taken in ((direct, into), (WORLD, into_theirs)):
        comm.Allgatherv(own, [taken, counts])
    assert np.array_equal(into, into_theirs)
    for comm, taken in ((direct, into), (WORLD, into_theirs)):
        comm.Reduce_scatter(whole, taken[: counts[RANK]], counts)
    assert np.array_equal(into, into_theirs)


@promise
def counts_that_mpi4py_refuses_are_refused() -> None:
    whole, own = np.zeros(2 * RANKS), np.zeros(2)
    for comm in (direct, WORLD):
        with refused(TypeError, "has no len"):
            comm.Reduce_scatter(whole, own, (2 for _ in range(RANKS)))
        with refused(ValueError, f"expecting {RANKS} items, got 1"):
            comm.Reduce_scatter(whole, own, [2])


@promise
def without_counts_a_buffer_is_divided_evenly() -> None:
    for more in (0, 1):  # of entries that no rank has
        ours, theirs = (np.zeros(5 * RANKS + more, "i4") for _ in range(2))
        own = filled(5 + (more and not RANK), "i4")
        for comm, into in ((direct, ours), (WORLD, theirs)):
            comm.Allgatherv(own, into)
        assert np.array_equal(ours, theirs)


@promise
def a_rank_whose_own_lengths_differ_reads_nothing_beyond_its_array() -> None:
    comm = Communicator(WORLD, "regular", "direct")
    sent, received = np.ones(2 if RANK == 0 else 4, "i4"), np.zeros(4 * RANKS, "i4")
    try:
        comm.Gatherv(sent, [received, [4] * RANKS] if RANK == 0 else None, 0)
        comm.Barrier()  # a rank that sends a short block waits for nobody
    except CallMismatch:
        return
    raise AssertionError("counts that differ from what a rank sends to itself are taken")


if __name__ == "__main__":
    keep()
