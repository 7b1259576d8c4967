"""Rank program: reductions that random programs do not draw give what mpi4py's give.

On ranks that see several hosts, by transport hierarchical; else by all others.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
PAIRS = {"f": MPI.FLOAT_INT, "d": MPI.DOUBLE_INT, "h": MPI.SHORT_INT, "i": MPI.TWOINT}


def communicators() -> Iterator[Communicator]:
    auto = Communicator(WORLD, "regular").transport
    for transport in ("direct", "mpi", "pickle") if auto == "direct" else (auto,):
        with Communicator(WORLD, "regular", transport) as ours:
            yield ours


@promise
def values_with_places_are_mpi4pys() -> None:
    """MAXLOC and MINLOC, on MPI's pair types."""
    for ours in communicators():
        for code, datatype in PAIRS.items():
            check_pairs(ours, code, datatype)


def check_pairs(ours: Communicator, code: str, datatype: MPI.Datatype) -> None:
    pair = np.dtype([("value", code), ("place", "i4")], align=True)
    given = np.zeros(1000, pair)
    given["value"] = np.random.default_rng(WORLD.rank).integers(0, 3, 1000)
    given["place"] = WORLD.rank
    for op in (MPI.MAXLOC, MPI.MINLOC):
        theirs, result = np.zeros(1000, pair), np.zeros(1000, pair)
        WORLD.Allreduce([given, 1000, datatype], [theirs, 1000, datatype], op)
        ours.Allreduce([given, 1000, datatype], [result, 1000, datatype], op)
        assert (result == theirs).all(), (ours, code)


def larger_bytes(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
    np.maximum(np.asarray(given), np.asarray(kept), out=np.asarray(kept))


def reduced(ours: Communicator, x: Any, count: int, op: MPI.Op) -> Iterator[tuple[str, Any, Any]]:
    """The results of mpi4py and of a communicator, by the name of the call."""
    for name in ("Allreduce", "Reduce", "Scan", "Reduce_scatter_block"):
        theirs, result = np.zeros((2, count if name == "Reduce_scatter_block" else x.size), x.dtype)
        getattr(WORLD, name)(x, theirs, op)
        getattr(ours, name)(x, result, op)
        yield name, theirs, result


@promise
def operations_of_the_program_are_mpi4pys() -> None:
    user = MPI.Op.Create(larger_bytes, commute=True)
    for ours in communicators():
        for code, count in itertools.product("bhHiIlLqfdFD?", (0, 1, 20000)):
            given = np.random.default_rng(WORLD.rank).integers(0, 3, WORLD.size * count)
            x = given.astype(code)
            for name, theirs, result in reduced(ours, x, count, user):
                assert result.tobytes() == theirs.tobytes(), (ours, name, code, count)
    user.Free()


@promise
def a_function_gets_no_values_of_two_types() -> None:
    """mpi4py refuses them; the core once reduced the bytes of one type as the other's."""
    op = MPI.Op.Create(lambda a, b, datatype: None, commute=True)
    x, y = np.ones(WORLD.size), np.zeros(WORLD.size, "i4")
    for ours in communicators():
        for name in ("Allreduce", "Scan", "Exscan", "Iallreduce", "Allreduce_init"):
            with refused(ValueError):
                getattr(ours, name)(x, y, op)
        with refused(ValueError):
            ours.Reduce_scatter_block(x, y[:1], op)
        with refused(ValueError):
            ours.Reduce_scatter(x, y[:1], [1] * WORLD.size, op)
    op.Free()


@promise
def sums_of_floats_are_mpi4pys_but_for_rounding() -> None:
    """The order of a sum is each library's own; so every entry may differ by some roundings."""
    for ours in communicators():
        for code, count in itertools.product("fdFD", (1, 70_001)):
            moving_on()
            check_sums(ours, code, count)


def check_sums(ours: Communicator, code: str, count: int) -> None:
    own = np.random.default_rng([WORLD.rank, count])
    x = np.zeros(count * WORLD.size, code)
    x.real = own.standard_normal(x.size) * 2.0 ** own.integers(-8, 8, x.size)
    most = WORLD.size * np.finfo(code).eps * WORLD.allreduce(np.abs(x).max())
    for name, theirs, result in reduced(ours, x, count, MPI.SUM):
        wrong = np.abs(result - theirs).max()
        assert wrong <= WORLD.size * most, (ours, name, code, count, wrong, most)


if __name__ == "__main__":
    keep()
