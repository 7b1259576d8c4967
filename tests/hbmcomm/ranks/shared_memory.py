"""Rank program: processes share memory, for as many communicators as they like, and all goes again.

Every rank prints "shared" when all held.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hbmcomm.errors import HbmcommError, OutOfMemory
from hbmcomm.memory.policy import places
from hbmcomm.memory.policy.kinds import resolve
from hbmcomm.memory.shared.arena import Arena
from hbmcomm.memory.shared.make import make

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
CONTROL = 100_000
MANY = 500
MIB = 2**20


def arena_of(comm: MPI.Intracomm, **more: object) -> Arena:
    def kind() -> object:
        return resolve("regular")

    return make(comm.allgather, comm.rank, comm.size, kind, CONTROL, **more)[0]


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:hbmcomm")


def rounds_of(arena: Arena) -> np.ndarray:
    """What each rank finds in the array of each rank, by writing into all of them in turn."""
    block = arena.allocate(5 * MIB)
    array = np.asarray(block)
    own = arena.ranks[arena._roll.rank]
    starts = WORLD.allgather(block.address - own.arrays)
    for writer in range(RANKS):
        WORLD.Barrier()
        if writer == RANK:
            for place, start in zip(arena.ranks, starts, strict=True):
                ctypes.memset(place.arrays + start + writer, writer + 1, 1)
    WORLD.Barrier()
    return array[:RANKS]


def check_alike_everywhere() -> None:
    arena, settings = make(
        *(WORLD.allgather, RANK, RANKS, lambda: resolve("regular"), CONTROL), extra=places.here
    )
    assert rounds_of(arena).tolist() == list(range(1, RANKS + 1))
    assert [place.pid for place in arena.ranks] == WORLD.allgather(os.getpid())
    assert settings == WORLD.allgather(settings[RANK])
    assert 0 < places.capacity(settings) <= len(os.sched_getaffinity(0)) * RANKS
    half = WORLD.Split(RANK % 2, -RANK)
    before = mappings()
    part = arena_of(half)
    assert mappings() == before and len(part.ranks) == half.size
    assert part.ranks[half.rank].arrays == arena.ranks[RANK].arrays
    half.Free()


def check_many() -> None:
    keeper = arena_of(WORLD)
    populated = keeper._ordinary.heap.usage.populated
    began = time.perf_counter()
    many = [arena_of(WORLD) for _ in range(MANY)]
    took = (time.perf_counter() - began) / MANY
    grown = keeper._ordinary.heap.usage.populated - populated
    assert grown <= MANY * (CONTROL + 8192) + 2 * MIB, grown
    addresses = {arena.ranks[RANK].control for arena in many}
    assert len(addresses) == MANY
    for arena in many:
        arena.retire()
    del many, arena
    WORLD.Barrier()
    for _ in range(MANY):
        keeper._ordinary.look()
    usage = keeper._ordinary.heap.usage
    assert usage.taken <= 2 * (CONTROL + 8192), usage
    if RANK == 0:
        print(f"{took * 1e6:.0f} us, {grown // MANY} bytes each", flush=True)


def check_failures() -> None:
    """Now one rank fails, now another, in another way; the others fail alike, and go on."""
    errors = (
        OSError(5, "x"),
        HbmcommError("x"),
        AttributeError("x"),
        MemoryError(),
        OutOfMemory("x"),
    )
    for number, error in enumerate(errors):
        for step in ("kind", "begin"):

            def fail(
                *_arguments: object, guilty: int = number % RANKS, why: Exception = error
            ) -> object:
                if guilty == RANK:
                    raise why
                return resolve("regular")

            try:
                if step == "kind":
                    make(WORLD.allgather, RANK, RANKS, fail, CONTROL)
                else:
                    arena_of(WORLD, begin=fail)
            except HbmcommError as found:
                assert len(set(WORLD.allgather(f"{type(found)} {found}"))) == 1, found
            else:
                raise AssertionError(f"{error!r} in {step} went unnoticed")
    arena_of(WORLD)


def check_fork() -> None:
    arena = arena_of(WORLD)
    array = np.asarray(arena.allocate(MIB))
    array[:] = 5
    child = os.fork()
    if not child:
        try:
            arena.allocate(MIB)
        except HbmcommError:
            del arena, array
            gc.collect()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    again = np.asarray(arena.allocate(MIB))
    again[:] = 6
    assert (array == 5).all()


def main() -> None:
    for check in (check_alike_everywhere, check_many, check_failures, check_fork):
        check()
        gc.collect()
        assert mappings() == 0, f"{check.__name__} left {mappings()} mappings"
        WORLD.Barrier()
    print("shared", flush=True)


if __name__ == "__main__":
    main()
