"""Rank program: drawn calls do what mpi4py does and what NumPy computes, byte for byte.

Every rank draws the same calls from the seed, and lays out its own memory for each.
Usage: direct_alike.py TRANSPORT SEED NUMBER [FIRST], where FIRST 17 and NUMBER 1 repeat call 17.
Prints "NUMBER calls alike" on rank 0; else each rank says which calls went wrong, and how.
"""

import sys
from dataclasses import replace

import numpy as np
from attempt import do
from drawn import DERIVED_FORMS, Call, draw, mpi_can
from ending import moving_on, say
from expected import expected
from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
LARGE = 0.04  # of the calls move a MiB or more
ENOUGH = 5  # wrong calls that a rank reports


def wrong(call: Call, ours: MPI.Intracomm, theirs: MPI.Intracomm) -> str:
    wanted = expected(call, WORLD.rank)
    tried, blocking = [(call, ours, "")], replace(call, way="blocking")
    if mpi_can(blocking):
        tried.insert(0, (blocking, theirs, "mpi4py: "))
    said = ""
    for each, comm, whose in tried:
        try:
            found = do(each, comm, wanted)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        said += whose + found if found else ""
    return said


def try_drawn(transport: str, seed: int, number: int, first: int) -> int:
    """How many calls went wrong on this rank."""
    found, derived = 0, DERIVED_FORMS
    if MPI.get_vendor()[0] == "Intel MPI":  # gathers rubbish where ranks count in other units
        derived = tuple(form for form in derived if form != "[all as one]")
    with Communicator(WORLD, "regular", transport) as ours:
        for index in range(first, first + number):
            moving_on()
            rng = np.random.default_rng([seed, index])
            call = draw(rng, WORLD.size, transport, LARGE, derived)
            if said := wrong(call, ours, WORLD):
                found += 1
                if found <= ENOUGH:
                    say(f"rank {WORLD.rank}, call {index} of seed {seed}: {said}: {call}")
    return found


def values_with_places_are_mpi4pys(transport: str) -> None:
    """MAXLOC and MINLOC, on MPI's pair types."""
    pairs = {"f": MPI.FLOAT_INT, "d": MPI.DOUBLE_INT, "h": MPI.SHORT_INT, "i": MPI.TWOINT}
    with Communicator(WORLD, "regular", transport) as ours:
        for code, datatype in pairs.items():
            pair = np.dtype([("value", code), ("place", "i4")], align=True)
            given = np.zeros(1000, pair)
            given["value"] = np.random.default_rng(WORLD.rank).integers(0, 3, 1000)
            given["place"] = WORLD.rank
            for op in (MPI.MAXLOC, MPI.MINLOC):
                theirs, found = np.zeros(1000, pair), np.zeros(1000, pair)
                WORLD.Allreduce([given, 1000, datatype], [theirs, 1000, datatype], op)
                ours.Allreduce([given, 1000, datatype], [found, 1000, datatype], op)
                assert (found == theirs).all(), code


if __name__ == "__main__":
    name, drawn_seed, calls, *rest = sys.argv[1:]
    problems = try_drawn(name, int(drawn_seed), int(calls), int(rest[0]) if rest else 0)
    values_with_places_are_mpi4pys(name)
    if not any(WORLD.allgather(problems)) and WORLD.rank == 0:
        say(f"{calls} calls alike")
