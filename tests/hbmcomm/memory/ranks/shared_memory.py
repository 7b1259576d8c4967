"""Rank program: processes share memory for many communicators, and free all of it.

Every rank prints "shared" at the end.
"""

import ctypes
import gc
import os
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI

from hbmcomm.memory import cpu_location
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
CONTROL = 100_000
MANY = 500
MIB = 2**20


def arena_of(comm: MPI.Intracomm, **more: object) -> Arena:
    def kind() -> object:
        return resolve("regular")

    return create_arena(comm.allgather, comm.rank, comm.size, kind, CONTROL, **more)[0]


def mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:hbmcomm")


def rounds_of(arena: Arena) -> np.ndarray:
    """What each rank finds in the array of each rank, by writing into all of them in turn."""
    block = arena.allocate(5 * MIB)
    array = np.asarray(block)
    own = arena.ranks[arena._membership.rank]
    starts = WORLD.allgather(block.address - own.arrays)
    for writer in range(RANKS):
        WORLD.Barrier()
        if writer == RANK:
            for place, start in zip(arena.ranks, starts, strict=True):
                ctypes.memset(place.arrays + start + writer, writer + 1, 1)
    WORLD.Barrier()
    return array[:RANKS]


def check_alike_everywhere() -> None:
    arena, settings = create_arena(
        *(WORLD.allgather, RANK, RANKS, lambda: resolve("regular"), CONTROL),
        extra=cpu_location.of_this_process,
    )
    assert rounds_of(arena).tolist() == list(range(1, RANKS + 1))
    assert [place.pid for place in arena.ranks] == WORLD.allgather(os.getpid())
    assert settings == WORLD.allgather(settings[RANK])
    assert 0 < cpu_location.usable_cpus(settings) <= len(os.sched_getaffinity(0)) * RANKS
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
        keeper._ordinary.run_deferred()
    usage = keeper._ordinary.heap.usage
    assert usage.taken <= 2 * (CONTROL + 8192), usage
    if RANK == 0:
        print(f"{took * 1e6:.0f} us, {grown // MANY} bytes each", flush=True)


def main() -> None:
    for check in (check_alike_everywhere, check_many):
        check()
        gc.collect()
        assert mappings() == 0, f"{check.__name__} left {mappings()} mappings"
        WORLD.Barrier()
    print("shared", flush=True)


if __name__ == "__main__":
    main()
