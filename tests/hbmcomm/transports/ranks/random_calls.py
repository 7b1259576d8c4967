"""Rank program: random calls do what mpi4py does and what NumPy computes, byte for byte.

Every rank draws the same calls from the seed, and lays out its own memory for each.
Sums of random floats are those of mpi4py but for rounding.
Usage: random_calls.py TRANSPORTS SEED NUMBER [FIRST], where FIRST 17 and NUMBER 1 repeat call 17 of
each transport; mpi and pickle get a third of the calls. TRANSPORTS is as in direct,mpi. Prints
"TRANSPORT: alike" on rank 0 for each transport; else each rank prints the calls that went wrong,
and how.
"""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from drawn.attempt import do
from drawn.calls import DERIVED_FORMS, OWN, Call, draw, mpi_can
from drawn.expected import expected
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
LARGE = 0.04  # of the calls move a MiB or more
ENOUGH = 5  # wrong calls that a rank reports


def wrong(call: Call, ours: MPI.Intracomm, theirs: MPI.Intracomm) -> str:
    wanted = expected(call, WORLD.rank)
    tried, blocking = [(call, ours, "")], replace(call, way="blocking")
    if mpi_can(blocking):
        tried.insert(0, (blocking, theirs, "mpi4py: "))
    text = ""
    for each, comm, whose in tried:
        try:
            found = do(each, comm, wanted)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        text += whose + found if found else ""
    return text


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
            if transport not in OWN:  # nonblocking and persistent calls are mpi4py's own there
                call = replace(call, way="keywords" if call.way == "keywords" else "blocking")
                # mpi4py reads an array of uint8 as MPI.BYTE, which only MPI can reduce
                if not mpi_can(call) or (call.reduces and call.dtype == "B"):
                    continue
            if text := wrong(call, ours, WORLD):
                found += 1
                if found <= ENOUGH:
                    say(f"rank {WORLD.rank}, call {index} of seed {seed}: {text}: {call}")
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


def larger_bytes(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
    np.maximum(np.asarray(given), np.asarray(kept), out=np.asarray(kept))


def reduced(ours: Communicator, x: Any, count: int, op: MPI.Op) -> Iterator[tuple[str, Any, Any]]:
    """The results of mpi4py and of a communicator, by the name of the call."""
    for name in ("Allreduce", "Reduce", "Scan", "Reduce_scatter_block"):
        theirs, found = np.zeros((2, count if name == "Reduce_scatter_block" else x.size), x.dtype)
        getattr(WORLD, name)(x, theirs, op)
        getattr(ours, name)(x, found, op)
        yield name, theirs, found


def operations_of_the_program_are_mpi4pys(transport: str) -> None:
    user = MPI.Op.Create(larger_bytes, commute=True)
    with Communicator(WORLD, "regular", transport) as ours:
        for code, count in itertools.product("bhHiIlLqfdFD?", (0, 1, 20000)):
            given = np.random.default_rng(WORLD.rank).integers(0, 3, WORLD.size * count)
            x = given.astype(code)
            for name, theirs, found in reduced(ours, x, count, user):
                assert found.tobytes() == theirs.tobytes(), (name, code, count)
    user.Free()


def sums_of_floats_are_mpi4pys_but_for_rounding(transport: str, seed: int) -> None:
    """The order of a sum is each library's own; so every entry may differ by some roundings."""
    rng = np.random.default_rng([seed, 1])
    with Communicator(WORLD, "regular", transport) as ours:
        for code, count in itertools.product("fdFD", (1, int(rng.integers(2, 10**5)))):
            moving_on()
            own = np.random.default_rng([seed, WORLD.rank, count])
            x = np.zeros(count * WORLD.size, code)
            x.real = own.standard_normal(x.size) * 2.0 ** own.integers(-8, 8, x.size)
            most = WORLD.size * np.finfo(code).eps * WORLD.allreduce(np.abs(x).max())
            for name, theirs, found in reduced(ours, x, count, MPI.SUM):
                wrong = np.abs(found - theirs).max()
                assert wrong <= WORLD.size * most, (name, code, count, wrong, most)


if __name__ == "__main__":
    _, names, *numbers = sys.argv
    drawn_seed, calls, *rest = map(int, numbers)
    for name in names.split(","):
        number = calls if name in OWN or rest else calls // 3
        problems = try_drawn(name, drawn_seed, number, *rest or [0])
        values_with_places_are_mpi4pys(name)
        operations_of_the_program_are_mpi4pys(name)
        sums_of_floats_are_mpi4pys_but_for_rounding(name, drawn_seed)
        if not any(WORLD.allgather(problems)) and WORLD.rank == 0:
            say(f"{name}: alike")
