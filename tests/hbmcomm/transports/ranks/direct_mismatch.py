"""Rank program: ranks that call different collectives all get an error that names both calls.

One rank, another one each time, differs in operation, count, dtype, reduction or root; the calls
before were alike and left some ranks ahead. Prints "named both" on each rank.
Usage: direct_mismatch.py TRANSPORT
"""

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
SMALL, LARGE = 4, 300_000
NAMES = (
    *("Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall"),
    *("Reduce", "Allreduce", "Reduce_scatter_block"),
)
ROOTED = ("Bcast", "Gather", "Scatter", "Reduce")
REDUCING = ("Reduce", "Allreduce", "Reduce_scatter_block")


@dataclass(frozen=True)
class Plain:
    """A call on arrays of its own."""

    name: str
    count: int
    dtype: str = "float32"
    op: str = "SUM"
    root: int = 0

    def run(self, comm: Communicator) -> None:
        blocks = self.count * RANKS
        one, many = comm.zeros(self.count, self.dtype), comm.zeros(blocks, self.dtype)
        other = np.zeros(blocks, self.dtype)
        op, root, result = getattr(MPI, self.op), self.root, np.zeros_like(one)
        arguments: dict[str, tuple[Any, ...]] = {
            "Barrier": (),
            "Bcast": (one, root),
            "Gather": (one, many, root),
            "Scatter": (many, one, root),
            "Allgather": (one, many),
            "Alltoall": (many, other),
            "Reduce": (one, result, op, root),
            "Allreduce": (one, result, op),
            "Reduce_scatter_block": (many, one, op),
            "allreduce": (self.count,),
            "Allgatherv": (one, many),
        }
        getattr(comm, self.name)(*arguments[self.name])

    def words(self) -> list[str]:
        """What an error that names this call says."""
        if self.name in ("Barrier", "allreduce", "Allgatherv"):
            return [self.name]
        shown = [f"{self.name}({self.count:,}", self.dtype]
        shown += [self.op] if self.name in REDUCING else []
        return shown + ([f"root={self.root}"] if self.name in ROOTED else [])


def pairs() -> Iterator[tuple[Plain, Plain]]:
    """Calls that differ in one thing, small and large."""
    for count in (SMALL, LARGE):
        for a, b in itertools.combinations(NAMES, 2):
            yield Plain(a, count), Plain(b, count)
        for name in NAMES[1:]:
            call = Plain(name, count)
            yield call, replace(call, count=count + 1)
            yield call, replace(call, count=0)
            yield call, replace(call, dtype="float64")
            if name in REDUCING:
                yield call, replace(call, dtype="int32")
                yield call, replace(call, dtype="float64", count=count // 2)
                yield call, replace(call, op="MAX")
            if name in ROOTED:
                yield call, replace(call, root=1)
    for name in NAMES[1:]:
        yield Plain(name, SMALL), Plain(name, LARGE)
    for name in ("allreduce", "Allgatherv"):  # MPI serves the first: with it, ranks meet
        yield Plain(name, SMALL), Plain("Allreduce", SMALL)
        yield Plain(name, LARGE), Plain("Barrier", 0)


def calls_alike(comm: Communicator, number: int) -> None:
    """Some ranks hurry ahead: a broadcast's root waits for nobody."""
    x = comm.zeros(SMALL)
    for index in range(number):
        comm.Bcast(x, index % 2)


def refusal(comm: Communicator, *calls: Plain) -> str:
    """The error of the first of these calls that is refused."""
    try:
        for each in calls:
            each.run(comm)
    except hbmcomm.CallMismatch as error:
        assert isinstance(error, hbmcomm.HbmcommError)
        return str(error)
    return ""


def differing(odd: Plain, usual: Plain) -> str:
    """What the error says differs: other collectives, or what of one."""
    if odd.name != usual.name:
        return "ranks called different collectives: "
    pairs = {
        "counts": (odd.count, usual.count),
        "types": (odd.dtype, usual.dtype),
        "reductions": (odd.op, usual.op),
        "roots": (odd.root, usual.root),
    }
    names = [name for name, (one, other) in pairs.items() if one != other]
    return f"ranks called {odd.name} with different {' and '.join(names)}: "


def both_are_named(transport: str, odd: Plain, usual: Plain, index: int) -> None:
    """A root may be done before the others come; then the next call that waits must fail."""
    moving_on()
    os.environ["HBMCOMM_CHECK_CALLS"] = str(int("allreduce" in (odd.name, usual.name)))
    comm = Communicator(WORLD, "regular", transport)
    calls_alike(comm, index % 11)
    mine = odd if index % RANKS == RANK else usual
    text = refusal(comm, mine, Plain("Barrier", 0))
    for word in [*odd.words(), *usual.words(), differing(odd, usual)]:
        assert word in text, f"{odd} against {usual}: {word!r} is not in {text!r}"
    again = refusal(comm, Plain("Allreduce", SMALL))
    assert again == text, f"{odd} against {usual}: first {text!r}, then {again!r}"
    comm.Free()


def a_short_buffer_is_no_other_collective(transport: str) -> None:
    """The root has no room for all blocks, so that its call is one for MPI."""
    comm = Communicator(WORLD, "regular", transport)
    text = ""
    try:
        comm.Gather(comm.zeros(SMALL), comm.zeros(RANKS) if RANK == 0 else None)
        comm.Barrier()
    except hbmcomm.CallMismatch as error:
        text = str(error)
    assert text.startswith("ranks called Gather with different arguments (a buffer is too"), text
    comm.Free()


def the_same_in_other_words_is_no_mismatch(transport: str) -> None:
    """Forms, layouts and names of one type differ among ranks, and do not matter.

    Nor do types of equal bytes where these are only moved.
    """
    with Communicator(WORLD, "regular", transport) as comm:
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


if __name__ == "__main__":
    the_same_in_other_words_is_no_mismatch(sys.argv[1])
    a_short_buffer_is_no_other_collective(sys.argv[1])
    for number, (a, b) in enumerate(pairs()):
        both_are_named(sys.argv[1], *((a, b) if number % 2 else (b, a)), number)
    say("named both")
