"""Rank program: random legal programs on Communicators, each result compared with mpi4py's.

Usage: random_programs.py TRANSPORT SECONDS SEED[:PROGRAM] FOLDER [LIBRARY]: programs of the seed
from a number on, until the seconds are over. FOLDER takes the step that each rank is in, LIBRARY is
drawn/slow_pages.c, compiled. HBMCOMM_TEST_WITHOUT switches features off (`drawn.features`). Rank 0
prints how many programs and calls were right; a rank that sees something else prints what it was
and ends all ranks. `tests/hbmcomm/transports/test_random_programs.py` starts it.
"""

import faulthandler
import gc
import sys
import time

from drawn import pages
from drawn.features import enabled
from drawn.program import RANK, RANKS, Part
from drawn.watch import Watch
from mpi4py import MPI

from tests.hbmcomm.ranks.ending import say


def main() -> None:
    transport, seconds, place, folder, *library = sys.argv[1:]
    seed, _, first = place.partition(":")
    faulthandler.enable()
    features = enabled()
    if library:
        pages.install(library[0])
    else:
        features -= {"stalls", "pauses", "read_only"}
    watch = Watch(folder, RANK, RANKS)
    part, number = Part(transport, int(seed), features, watch), int(first or 0)
    gc.freeze()
    end = time.monotonic() + float(seconds)
    begin = number
    while MPI.COMM_WORLD.bcast(number == begin or time.monotonic() < end):
        part.program(number)
        number += 1
    if RANK == 0:
        faults, pauses = pages.counts()
        say(
            f"{number - begin} programs with {part.calls} calls right on {RANKS} ranks; "
            f"rank 0 had {faults} slow accesses and {pauses} pauses"
        )
    part.leave_all()
    watch.done()


if __name__ == "__main__":
    main()
