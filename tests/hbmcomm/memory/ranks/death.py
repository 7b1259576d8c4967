"""Rank program: the last rank is killed; the others see that it lives no more, and go on.

Usage: death.py FOLDER. Each survivor leaves "noticed" in the folder, and goes without MPI's
own end, which would wait for the lost rank.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from mpi4py import MPI

from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.pool import lib

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
PATIENCE = 5.0  # seconds


def main(folder: Path) -> None:
    arenas = [
        create_arena(WORLD.allgather, RANK, RANKS, lambda: resolve("regular"), 10_000)[0]
        for _ in range(2)
    ]
    last = arenas[0].ranks[-1]
    assert all(lib.hbm_is_claimed(place.claim, arenas[0].boot) for place in arenas[0].ranks)
    WORLD.Barrier()
    if RANK == RANKS - 1:
        ctypes.memset(last.control, 9, 10)
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while lib.hbm_is_claimed(last.claim, arenas[0].boot) and time.monotonic() < until:
        time.sleep(0.001)
    assert not lib.hbm_is_claimed(last.claim, arenas[0].boot)
    assert ctypes.string_at(last.control, 10) == b"\t" * 10  # its memory is still there
    taken = arenas[1]._ordinary.heap.usage.taken
    arenas[0].retire()
    while arenas[1]._ordinary.heap.usage.taken == taken and time.monotonic() < until:
        arenas[1].allocate(1)
        arenas[1]._ordinary.run_deferred()
        time.sleep(0.001)
    assert arenas[1]._ordinary.heap.usage.taken < taken, "the dead rank is waited for"
    (folder / f"rank{RANK}").write_text("noticed")
    while len(list(folder.glob("rank*"))) < RANKS - 1 and time.monotonic() < until:
        time.sleep(0.01)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
