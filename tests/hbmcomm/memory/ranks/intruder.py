"""Rank program: the last rank means ill; the others notice, or are none the worse for it.

Usage: intruder.py FOLDER. Every honest rank prints "unharmed" when all held.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm.errors import ArenaUnavailable
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.segment import Locator

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
INTRUDER = RANKS - 1
CONTROL = 100_000


def arena_of(lie: Callable[[Any], Any] | None = None) -> Arena:
    def allgather(value: Any) -> Any:
        if lie is not None and RANK == INTRUDER and getattr(value, "offer", None) is not None:
            value = value._replace(offer=lie(value.offer))
        return WORLD.allgather(value)

    return create_arena(allgather, RANK, RANKS, lambda: resolve("regular"), CONTROL)[0]


def cut_short(arena: Arena) -> None:
    """Every file of another rank that this one has mapped."""
    refused = 0
    for pid in {place.pid for place in arena.ranks} - {os.getpid()}:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if "memfd:hbmcomm" not in str(link.readlink()):
                    continue
                os.truncate(link, 0)
            except PermissionError:
                refused += 1
    assert refused == 2 * (RANKS - 1), refused


def lies(folder: Path) -> dict[str, Callable[[Any], Any]]:
    """What the intruder offers instead of its memory; test_segment.py tries all other files."""
    victim = folder / "victim"
    if RANK == INTRUDER:
        victim.write_bytes(b"precious")
        os.truncate(victim, 64 * 2**20)

    def file(offer: Any) -> Any:
        descriptor, state = os.open(victim, os.O_RDWR), victim.stat()
        path, name = f"/proc/{os.getpid()}/fd/{descriptor}", "hbmcomm.0123456789abcdef"
        locator = Locator("memfd", path, state.st_dev, state.st_ino, name, 64 * 2**20)
        return offer._replace(arrays=locator)

    return {
        "file": file,
        "control": lambda offer: offer._replace(control=2**45),
        "text": lambda offer: offer._replace(ordinary="/etc/passwd"),
    }


def main(folder: Path) -> None:
    arena = arena_of()
    array = np.asarray(arena.allocate(10 * 2**20))
    array[:] = 7
    WORLD.Barrier()
    if RANK == INTRUDER:
        cut_short(arena)
    WORLD.Barrier()
    assert (array == 7).all()
    assert all(ctypes.string_at(each.arrays + each.array_bytes - 1, 1) for each in arena.ranks)
    for name, lie in lies(folder).items():
        try:
            arena_of(lie)
        except ArenaUnavailable as error:
            assert f"memfd: rank 0: cannot map the memory of rank {INTRUDER} (" in str(error), error
        else:
            raise AssertionError(f"{name} went unnoticed")
        WORLD.Barrier()
    assert (folder / "victim").read_bytes()[:8] == b"precious"
    arena_of()
    if RANK != INTRUDER:
        print("unharmed", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
