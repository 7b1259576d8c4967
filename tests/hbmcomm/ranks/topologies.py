"""Rank program: drawn grids and graphs are what mpi4py makes of the same arguments.

Rank 0 draws topologies with hypothesis and hands each to all. Every rank makes it of mpi4py's world
and of a Communicator, and compares what both know of their neighbours and what they exchange with
them. Prints "TRANSPORT: every topology alike on RANKS ranks". Usage: topologies.py TRANSPORT...
"""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import ending
import numpy as np
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from mpi4py import MPI

from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
TOPOLOGIES = 12  # of each form
FORMS = {
    "Create_cart": MPI.Cartcomm,
    "Create_graph": MPI.Graphcomm,
    "Create_dist_graph": MPI.Distgraphcomm,
    "Create_dist_graph_adjacent": MPI.Distgraphcomm,
}


class Drawn(NamedTuple):
    """A topology: the call that makes it, and its arguments by rank."""

    call: str
    arguments: list[tuple[Any, ...]]
    reorder: bool
    count: int
    """Elements to each neighbour."""


def grids() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    sides = st.permutations([1, 1, RANKS]) | st.permutations([1, RANKS - 1])

    def with_periods(dims: list[int]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
        flags = st.lists(st.booleans(), min_size=len(dims), max_size=len(dims))
        return flags.map(lambda periods: [(dims, periods)] * RANKS)

    return sides.flatmap(with_periods)


def matrices() -> st.SearchStrategy[list[list[int]]]:
    """How many edges go from each rank to each.

    Each rank has one to its next at least: mpi4py itself fails in Neighbor_alltoall on Open MPI
    (MPI_ERR_TRUNCATE) where a rank sends to nobody.
    """
    row = st.lists(st.integers(0, 2), min_size=RANKS, max_size=RANKS)
    ring = np.roll(np.eye(RANKS, dtype=int), 1, axis=1)
    return st.lists(row, min_size=RANKS, max_size=RANKS).map(lambda rows: (rows + ring).tolist())


def neighbours(counts: list[int]) -> list[int]:
    return [rank for rank, count in enumerate(counts) for _ in range(count)]


def graph(matrix: list[list[int]]) -> list[tuple[Any, ...]]:
    """Both ways, as MPI wants it for exchanges."""
    both = np.array(matrix) + np.array(matrix).T
    rows = [neighbours(row) for row in both.tolist()]
    index = np.cumsum([len(row) for row in rows]).tolist()
    return [(index, [other for row in rows for other in row])] * RANKS


def declared_by_the_sender(matrix: list[list[int]]) -> list[tuple[Any, ...]]:
    out = [neighbours(row) for row in matrix]
    return [([rank], [len(each)], each) for rank, each in enumerate(out)]


def declared_by_both(matrix: list[list[int]]) -> list[tuple[Any, ...]]:
    into = np.array(matrix).T.tolist()
    return [(neighbours(a), neighbours(b)) for a, b in zip(into, matrix, strict=True)]


ARGUMENTS = {
    "Create_cart": grids(),
    "Create_graph": matrices().map(graph),
    "Create_dist_graph": matrices().map(declared_by_the_sender),
    "Create_dist_graph_adjacent": matrices().map(declared_by_both),
}


ORDER = {"Create_dist_graph": sorted}
"""Where MPI leaves the order of the neighbours open, they are compared without it."""


def known(comm: Any, call: str) -> Iterator[Any]:
    """What a communicator knows of its topology."""
    yield comm.Get_topology(), comm.rank, comm.size, comm.indegree, comm.outdegree
    order = ORDER.get(call, list)
    yield order(comm.inedges), order(comm.outedges)
    if call == "Create_cart":
        yield comm.Get_topo(), comm.Get_dim(), comm.dims, comm.periods, comm.coords
        yield [comm.Get_coords(rank) for rank in range(comm.size)]
        yield [comm.Get_cart_rank(comm.Get_coords(rank)) for rank in range(comm.size)]
        yield [comm.Shift(axis, step) for axis in range(comm.ndim) for step in (1, -1, 2)]
        yield comm.Cart_map(comm.dims, comm.periods)
    elif call == "Create_graph":
        yield comm.Get_dims(), comm.Get_topo(), comm.neighbors
        yield [comm.Get_neighbors(rank) for rank in range(comm.size)]
    else:
        yield comm.Get_dist_neighbors_count()
        yield [each and order(each) for each in comm.Get_dist_neighbors()]


def exchanged(comm: Any, call: str, count: int) -> Iterator[Any]:
    """What comes to this rank by each way of exchange; what nobody sends stays -1."""
    into, out = comm.indegree, comm.outdegree
    order = ORDER.get(call, list)
    marks = comm.outedges if order is sorted else list(range(out))
    part = np.arange(count) + 1000 * (comm.rank + 1)
    parts = np.array([part + 100 * mark for mark in marks])

    def taken() -> Any:
        return np.full((into, count), -1)

    def placed(degree: int) -> tuple[list[int], list[int]]:
        return [count] * degree, [count * each for each in range(degree)]

    comm.Neighbor_allgather(part, all_of_one := taken())
    comm.Neighbor_allgatherv(part, (of_counts := taken(), placed(into)))
    comm.Neighbor_alltoall(parts, one_each := taken())
    comm.Neighbor_alltoallv((parts, placed(out)), (of_both := taken(), placed(into)))
    comm.Ineighbor_alltoall(parts, later := taken()).Wait()
    yield from (order(a.tolist()) for a in (all_of_one, of_counts, one_each, of_both, later))
    yield order(comm.neighbor_allgather(("from", comm.rank)))
    yield order(comm.neighbor_alltoall([(comm.rank, mark) for mark in marks]))
    if call == "Create_cart":
        for axis in range(comm.ndim):
            source, target = comm.Shift(axis, 1)
            halo = np.full(count, -1)
            comm.Sendrecv(part, target, recvbuf=halo, source=source)
            yield halo.tolist()
    comm.Allreduce(part, total := np.empty_like(part))
    yield total.tolist()


def parts_of(grid: Any) -> Iterator[list[Any]]:
    """What the rows and columns of a grid know and sum."""
    for axis in range(grid.ndim):
        part = grid.Sub([each == axis for each in range(grid.ndim)])
        if isinstance(grid, Communicator):
            assert isinstance(part, Communicator) and part.transport == grid.transport
        yield [*known(part, "Create_cart"), part.allreduce(grid.rank)]
        part.Free()


def found(parent: MPI.Intracomm, drawn: Drawn) -> tuple[list[Any], Any]:
    """What this rank learns of a topology on `parent`, and its communicator."""
    comm = getattr(parent, drawn.call)(*drawn.arguments[RANK], reorder=drawn.reorder)
    if comm == MPI.COMM_NULL:
        return [], comm
    learnt = [*known(comm, drawn.call), *exchanged(comm, drawn.call, drawn.count)]
    if drawn.call == "Create_cart":
        learnt += parts_of(comm)
    return learnt, comm


def compare(ours: Communicator, drawn: Drawn) -> list[str]:
    """What differs on any rank; the same list on every rank."""
    ending.moving_on()
    wanted, theirs = found(WORLD, drawn)
    got, made = found(ours, drawn)
    differs = "" if got == wanted else f"rank {RANK}: {got} in place of {wanted}"
    right = (FORMS[drawn.call], Communicator, ours.kind, ours.transport)
    if made != MPI.COMM_NULL:
        kept = [isinstance(made, each) for each in right[:2]] == [True, True]
        if not kept or (made.kind, made.transport) != right[2:]:
            differs += f"rank {RANK}: {made!r} in place of {right}"
    for each in (theirs, made):
        if each != MPI.COMM_NULL:
            each.Free()
    return [each for each in WORLD.allgather(differs) if each]


def draw_and_compare(ours: Communicator, call: str) -> None:
    @seed(7)
    @settings(
        max_examples=TOPOLOGIES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(ARGUMENTS[call], st.booleans(), st.sampled_from((1, 5)))
    def every_topology_is_alike(
        arguments: list[tuple[Any, ...]], reorder: bool, count: int
    ) -> None:
        drawn = WORLD.bcast(Drawn(call, arguments, reorder, count))
        assert compare(ours, drawn) == []

    every_topology_is_alike()


def try_all(transport: str) -> None:
    with Communicator(kind="regular", transport=transport) as ours:
        if RANK == 0:
            try:
                for call in FORMS:
                    draw_and_compare(ours, call)
            finally:
                WORLD.bcast(None)
            print(f"{transport}: every topology alike on {RANKS} ranks", flush=True)
        else:
            while (drawn := WORLD.bcast(None)) is not None:
                compare(ours, drawn)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try_all(name)
