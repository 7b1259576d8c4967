"""Rank program: ranks that call different collectives all get an error that names both calls.

One rank, another one each time, differs in operation, count, dtype, reduction or root; the calls
before were alike and left some ranks ahead.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on
from tests.hbmcomm.ranks.promising import keep, promise

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SMALL, LARGE = 4, 300_000
Call = tuple[str, Callable[[Communicator], object]]
"""What an error that names the call says, and what makes it."""


def calls(count: int, dtype: str = "float32", op: str = "SUM", root: int = 0) -> dict[str, Call]:
    """Calls on arrays of their own, by name."""
    of, reduce = f"{count:,} x {dtype}", getattr(MPI, op)
    one, many = hbmcomm.zeros(count, dtype), hbmcomm.zeros(RANKS * count, dtype)
    other = np.zeros(RANKS * count, dtype)
    return {
        "Barrier": ("Barrier()", lambda comm: comm.Barrier()),
        "Bcast": (f"Bcast({of}, root={root})", lambda comm: comm.Bcast(one, root)),
        "Gather": (f"Gather({of}, root={root})", lambda comm: comm.Gather(one, many, root)),
        "Scatter": (f"Scatter({of}, root={root})", lambda comm: comm.Scatter(many, one, root)),
        "Allgather": (f"Allgather({of})", lambda comm: comm.Allgather(one, many)),
        "Alltoall": (f"Alltoall({of})", lambda comm: comm.Alltoall(many, other)),
        "Reduce": (
            f"Reduce({of}, {op}, root={root})",
            lambda comm: comm.Reduce(one, other[:count], reduce, root),
        ),
        "Allreduce": (
            f"Allreduce({of}, {op})",
            lambda comm: comm.Allreduce(one, other[:count], reduce),
        ),
        "Reduce_scatter_block": (
            f"Reduce_scatter_block({of}, {op})",
            lambda comm: comm.Reduce_scatter_block(many, one, reduce),
        ),
    }


def pairs(count: int) -> Iterator[tuple[str, Call, Call]]:
    """What is said to differ, and the calls; the native tests draw all operations."""
    usual = calls(count)
    for one, other in itertools.pairwise(usual.values()):
        yield "different collectives", one, other
    for what, names, differing in (
        ("counts", list(usual)[1:], calls(count + 1)),
        ("counts", list(usual)[1:], calls(0)),
        ("types", list(usual)[1:], calls(count, "float64")),
        ("types", ["Reduce", "Allreduce"], calls(count, "int32")),
        ("counts and types", ["Reduce", "Allreduce"], calls(count // 2, "float64")),
        ("reductions", ["Reduce", "Allreduce", "Reduce_scatter_block"], calls(count, op="MAX")),
        ("roots", ["Bcast", "Gather", "Scatter", "Reduce"], calls(count, root=1)),
        ("counts", list(usual)[1:], calls(LARGE if count == SMALL else SMALL)),
    ):
        for name in names:
            yield f"{name} with different {what}", usual[name], differing[name]
    many: list[np.ndarray] = [np.zeros(count), np.zeros(RANKS * count)]
    for odd in (
        ("allreduce", lambda comm: comm.allreduce(count)),  # MPI serves it: with it, ranks meet
        ("Allgatherv", lambda comm: comm.Allgatherv(*many)),
    ):
        yield "different collectives", odd, usual["Allreduce"]


def refusal(comm: Communicator, *made: Call) -> str:
    """The error of the first of these calls that is refused."""
    try:
        for _, call in made:
            call(comm)
    except hbmcomm.CallMismatch as error:
        assert isinstance(error, hbmcomm.HbmcommError)
        return str(error)
    return ""


def both_are_named(what: str, odd: Call, usual: Call, index: int) -> None:
    """A root may be done before the others come; then the next call that waits must fail.

    Some ranks are ahead, since a broadcast's root waits for nobody.
    """
    moving_on()
    checks = {"HBMCOMM_CHECK_CALLS": str(int("allreduce" in (odd[0], usual[0])))}
    with mock.patch.dict(os.environ, checks):
        comm, x = Communicator(WORLD, "regular", "direct"), np.zeros(SMALL)
    for number in range(index % 11):
        comm.Bcast(x, number % 2)
    text = refusal(comm, odd if index % RANKS == RANK else usual, calls(0)["Barrier"])
    assert text.startswith(f"ranks called {what}: "), text
    assert f"called {odd[0]}" in text and f"called {usual[0]}" in text, (odd[0], usual[0], text)
    assert refusal(comm, calls(SMALL)["Allreduce"]) == text
    comm.Free()


@promise
def a_short_buffer_is_no_other_collective() -> None:
    """The root has no room for all blocks, so that its call is one for MPI."""
    comm = Communicator(WORLD, "regular", "direct")
    text = ""
    try:
        comm.Gather(comm.zeros(SMALL), comm.zeros(RANKS) if RANK == 0 else None)
        comm.Barrier()
    except hbmcomm.CallMismatch as error:
        text = str(error)
    assert text.startswith("ranks called Gather with different arguments (a buffer is too"), text
    comm.Free()


@promise
def the_same_in_other_words_is_no_mismatch() -> None:
    """Forms, layouts and names of one type differ among ranks, and do not matter.

    Nor do types of equal bytes where these are only moved.
    """
    with Communicator(WORLD, "regular", "direct") as comm:
        x = comm.full(6, 1, "int64") if RANK else np.full(6, 1, "int64")
        y = np.zeros(6, "int64")
        datatype = MPI.INT64_T if RANK else MPI.LONG
        comm.Allreduce([x, 6, datatype] if RANK % 2 else x, y)
        assert (y == RANKS).all()
        comm.Bcast([y, 6, MPI.LONG_LONG if RANK else MPI.LONG])
        comm.Allreduce(MPI.IN_PLACE if RANK else x, y if RANK else np.zeros(6, "int64"))
        comm.Allgather(x.reshape(2, 3), np.zeros((RANKS, 6), "int64"))
        for entries in (SMALL, LARGE):
            of_equal_bytes_are_moved(comm, entries)


def of_equal_bytes_are_moved(comm: Communicator, entries: int) -> None:
    """Rank 0 calls them doubles, the others bytes: in one call of each kind."""
    nbytes = 8 * entries
    own, every = np.full(entries, RANK + 1.0), np.zeros((RANKS, entries))
    expected = np.arange(1.0, RANKS + 1)[:, np.newaxis]

    def named(array: Any, odd: int = 0) -> Any:
        return array if odd == RANK else [array, MPI.BYTE]

    comm.Bcast([own, entries, MPI.DOUBLE] if RANK == 0 else [own, nbytes, MPI.BYTE])
    assert (own == 1).all()
    own[:] = RANK + 1
    for name in ("Gather", "Gatherv"):
        every[:] = 0
        getattr(comm, name)(named(own), [every, MPI.BYTE] if RANK == 0 else None)
        assert RANK or (every == expected).all(), name
    for name in ("Scatter", "Scatterv"):
        own[:] = 0
        getattr(comm, name)(every if RANK == 0 else None, named(own, 1))
        every[:] = expected
        comm.Bcast(every)
        assert (own == RANK + 1).all(), name
    for name in ("Allgather", "Allgatherv"):
        every[:] = 0
        getattr(comm, name)(named(own), named(every, 1))
        assert (every == expected).all(), name
    sent = np.repeat(own[np.newaxis], RANKS, 0)
    for name in ("Alltoall", "Alltoallv"):
        every[:] = 0
        getattr(comm, name)(named(sent), named(every, 1))
        assert (every == expected).all(), name


@promise
def other_calls_are_errors_that_name_both() -> None:
    for number, (what, a, b) in enumerate((*pairs(SMALL), *pairs(LARGE))):
        both_are_named(what, *((a, b) if number % 2 else (b, a)), number)


if __name__ == "__main__":
    keep()
