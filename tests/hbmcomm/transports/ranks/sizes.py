"""Rank program: entries of every size are reduced as by MPI. For two to four ranks."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from mpi4py import MPI
from promising import keep, promise

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
SIZES = (0, 1, 3, 8, 1000, 64 << 10, 65_537, 300_000, 600_000, 5 << 20)
"""Bytes of an entry: about a cache line, a piece, all staging buffers."""
if MPI.get_vendor()[0] == "Intel MPI":  # it divides by the size of an entry
    SIZES = SIZES[1:]
NAMES = ("Reduce", "Allreduce", "Reduce_scatter_block", "Reduce_scatter", "Scan", "Exscan")
Reduction = Callable[[Any, Any], None]


def add(a: MPI.buffer, b: MPI.buffer, _: MPI.Datatype) -> None:
    np.add(np.frombuffer(a, "u1"), np.frombuffer(b, "u1"), out=np.frombuffer(b, "u1"))


ADD = MPI.Op.Create(add, commute=True)


def calls(comm: MPI.Intracomm, make: Any) -> Iterator[tuple[str, list[Any], Any]]:
    """The arguments of each call, and the array of its result."""
    for size in SIZES:
        datatype = MPI.BYTE.Create_contiguous(size).Commit()
        for name in NAMES:
            per_rank = 2 if size < 300_000 else 1
            blocks = comm.size if name.startswith("Reduce_scatter") else 1
            sends = per_rank if name == "Reduce_scatter_block" else per_rank * blocks
            x, y = make(max(per_rank * blocks * size, 1), "u1"), make(max(per_rank * size, 1), "u1")
            x[:] = np.arange(x.size) * (comm.rank + 1) % 251
            y[:] = 7
            counts = [[per_rank] * comm.size] if name == "Reduce_scatter" else []
            arguments = [[x, sends, datatype], [y, per_rank, datatype], *counts, ADD]
            yield f"{name} of {per_rank} x {size} bytes", arguments, y
        datatype.Free()


def compare(ours: Communicator, make: Any, run: Callable[..., None]) -> None:
    expected = [y.copy() for name, arguments, y in done(WORLD, np.empty, blocking)]
    for (name, _, y), right in zip(done(ours, make, run), expected, strict=True):
        assert np.array_equal(y, right), f"{name}, {run.__name__}: {y[:8]}, not {right[:8]}"


def done(comm: Any, make: Any, run: Callable[..., None]) -> Iterator[tuple[str, Any, Any]]:
    for name, arguments, y in calls(comm, make):
        run(comm, name.partition(" ")[0], arguments)
        yield name, arguments, y


def blocking(comm: Any, name: str, arguments: list[Any]) -> None:
    getattr(comm, name)(*arguments)


def accepting(arguments: list[Any]) -> suppress:
    """Open MPI's Ireduce_scatter_block and its plans refuse empty entries, which change nothing."""
    return suppress(*[] if arguments[0][2].size else [MPI.Exception])


def nonblocking(comm: Any, name: str, arguments: list[Any]) -> None:
    with accepting(arguments):
        getattr(comm, f"I{name.lower()}")(*arguments).Wait()


def persistent(comm: Any, name: str, arguments: list[Any]) -> None:
    with accepting(arguments):
        plan = getattr(comm, f"{name}_init")(*arguments)
        plan()
        plan.Free()


def check(transport: str, run: Callable[..., None], in_arena: bool) -> None:
    """Another communicator, whose control block follows the staging buffers, still works."""
    with Communicator(WORLD, "regular", transport) as comm:
        comm.Allreduce(np.ones(50_000), np.zeros(50_000))
        with Communicator(WORLD, "regular", transport) as other:
            compare(comm, comm.empty if in_arena else np.empty, run)
            y = np.zeros(3)
            for _ in range(20):
                other.Allreduce(np.ones(3), y)
                other.Barrier()
            assert (y == WORLD.size).all()


@promise
def entries_of_any_size_in_private_memory() -> None:
    check("direct", blocking, in_arena=False)


@promise
def entries_of_any_size_in_the_arena() -> None:
    check("direct", blocking, in_arena=True)


@promise
def entries_of_any_size_in_flight() -> None:
    check("direct", nonblocking, in_arena=False)


@promise
def entries_of_any_size_in_plans() -> None:
    check("direct", persistent, in_arena=True)


@promise
def entries_of_any_size_by_hosts() -> None:
    check("hierarchical", blocking, in_arena=False)


keep()
