"""Rank program: random calls in random memory at random moments, each checked bit for bit.

Usage: stress.py TRANSPORT SECONDS [SEED]. Ten minutes by hand: mpiexec -n 3 python stress.py
direct 600. Prints the seed at the start, the number of calls at the end; every rank that finds
something wrong says which call it was and ends all ranks.
"""

import sys
import time

import numpy as np
from attempt import Attempt
from drawn import draw
from ending import moving_on, say
from expected import expected
from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
ROUND = 50  # calls between two looks at the clock
LATEST = 0.002  # seconds by which a rank may be late
KEPT = 8  # earlier calls whose memory stays in use, so that an arena has holes


def dawdle(rng: np.random.Generator) -> None:
    """Be late, in a third of all cases."""
    if rng.random() < 1 / 3:
        time.sleep(rng.uniform(0, LATEST))


def one_round(comm: Communicator, seed: int, number: int, kept: list[Attempt]) -> None:
    """The calls of one round; each of them follows from the seed and its number alone."""
    for index in range(number * ROUND, (number + 1) * ROUND):
        rng = np.random.default_rng([seed, index])
        call = draw(rng, comm.size, comm.transport, large=0.02)
        own = np.random.default_rng([seed, index, comm.rank])
        attempt = Attempt(call, comm)
        attempt.fill()
        moving_on()
        dawdle(own)
        attempt.run()
        if said := attempt.wrong(expected(call, comm.rank)):
            raise AssertionError(f"call {index} of seed {seed}: {said}: {call}")
        attempt.free()
        kept.append(attempt)
        if len(kept) > KEPT:
            del kept[int(own.integers(KEPT))]


def stress(transport: str, seconds: float, seed: int) -> int:
    """How many calls were right."""
    end, number, kept = time.monotonic() + seconds, 0, []
    with Communicator(WORLD, "regular", transport) as comm:
        while WORLD.bcast(time.monotonic() < end):
            one_round(comm, seed, number, kept)
            number += 1
    return number * ROUND


if __name__ == "__main__":
    name, duration, *rest = sys.argv[1:]
    chosen = WORLD.bcast(int(rest[0]) if rest else time.time_ns() % 10**9)
    if WORLD.rank == 0:
        say(f"seed {chosen}")
    calls = stress(name, float(duration), chosen)
    if WORLD.rank == 0:
        say(f"{calls} calls right on {WORLD.size} ranks")
