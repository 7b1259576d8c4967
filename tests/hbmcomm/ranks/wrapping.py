"""Rank program: what may be wrapped, what derived communicators are, and what nobody may assign.

Needs 3 ranks or more.
"""

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size


def works(comm: Any) -> bool:
    """Whether a collective of arrays and one of objects give what they must."""
    x, y = comm.full(5, 2.0), comm.zeros(5)
    comm.Allreduce(x, y)
    ranks = list(range(comm.size))
    return bool((y == 2 * comm.size).all()) and comm.allgather(comm.rank) == ranks


def moves_data_by(comm: Any, transport: str) -> bool:
    """Whether it has this transport in fact: arrays of direct, and of it alone, are shared."""
    place = hbmcomm.source(comm.zeros(100))
    return comm.transport == transport and (place == "arena") == (transport == "direct")


@promise("direct", "mpi", "pickle")
def one_of_ours_can_be_wrapped_again(inner: str) -> None:
    for outer in ("direct", "mpi", "pickle"):
        first = Communicator(WORLD, kind="regular", transport=inner, nodes=[0])
        second = Communicator(first, transport=outer)
        assert (second.transport, second.nodes, first.transport) == (outer, None, inner)
        first.Free()
        assert works(second), (inner, outer)
        assert moves_data_by(second, outer), (inner, outer)
        third = Communicator(second)
        assert third.transport == "direct", "left out: the default, not what the wrapped one has"
        second.Free()
        assert works(third)
        third.Free()


@promise("direct", "mpi", "pickle")
def what_idup_made_can_be_wrapped_before_it_is_used(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        later, request = comm.Idup()
        request.Wait()
        again = Communicator(later, transport=transport)
        assert works(again)
        assert works(later)
        again.Free()
        later.Free()


@promise("direct", "mpi", "pickle")
def nobody_can_assign_what_was_chosen_at_the_beginning(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        for name in ("transport", "kind", "nodes", "device"):
            with refused(AttributeError, f"Communicator(comm, {name}=...)"):
                setattr(comm, name, "mpi")
        assert moves_data_by(comm, transport)


def topologies(comm: MPI.Intracomm) -> Iterator[tuple[type, Any]]:
    """Each kind of them: its class, and one made of `comm`."""
    yield MPI.Cartcomm, comm.Create_cart([RANKS], periods=[True])
    index = [2 * (rank + 1) for rank in range(RANKS)]
    edges = [(rank + step) % RANKS for rank in range(RANKS) for step in (1, -1)]
    yield MPI.Graphcomm, comm.Create_graph(index, edges)
    before, after = [(RANK - 1) % RANKS], [(RANK + 1) % RANKS]
    yield MPI.Distgraphcomm, comm.Create_dist_graph_adjacent(before, after)
    yield MPI.Distgraphcomm, comm.Create_dist_graph([RANK], [1], after)


@promise("direct", "mpi", "pickle")
def topologies_are_mpi4pys_and_go_by_the_transport(transport: str) -> None:
    """mpi4py's own tests compare what ranks know of their neighbours, and exchange with them."""
    with Communicator(WORLD, kind="regular", transport=transport) as comm:
        both = zip(topologies(WORLD), topologies(comm), strict=True)
        for (kind, theirs), (_, ours) in both:
            assert isinstance(ours, Communicator) and ours.kind == "regular"
            assert ours.neighbor_allgather(RANK) == theirs.neighbor_allgather(RANK)
            for topology in (ours, ours.Dup(), Communicator(ours, transport=transport)):
                assert isinstance(topology, kind)
                assert works(topology)
                assert moves_data_by(topology, transport)
                if topology is not ours:
                    topology.Free()
            wrapped = Communicator(theirs, transport=transport)
            assert isinstance(wrapped, kind)
            assert works(wrapped)
            for topology in (wrapped, ours, theirs):
                topology.Free()


@promise("direct", "mpi", "pickle")
def parts_of_a_grid_are_grids_and_its_children_are_none(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        grid: Any = comm.Create_cart([RANKS, 1])
        row: Any = grid.Sub([False, True])
        assert isinstance(row, MPI.Cartcomm)
        assert (row.size, row.Get_dim()) == (1, 1)
        assert works(row)
        assert moves_data_by(row, transport)
        half = grid.Split(RANK % 2)
        assert not isinstance(half, MPI.Cartcomm)
        assert works(half)
        for communicator in (half, row, grid):
            communicator.Free()
        few = comm.Create_cart([RANKS - 1])
        assert (few == MPI.COMM_NULL) == (RANK == RANKS - 1)
        if few:
            assert works(few)
            few.Free()


@promise("direct", "mpi", "pickle")
def ranks_left_out_of_a_topology_get_mpi4pys_null_and_its_errors(transport: str) -> None:
    last = RANK == RANKS - 1
    ring = [(rank + 1) % (RANKS - 1) for rank in range(RANKS - 1)]
    with Communicator(WORLD, kind="regular", transport=transport) as comm:
        for make in (
            lambda parent: parent.Create_cart([RANKS - 1], reorder=True),
            lambda parent: parent.Create_graph(list(range(1, RANKS)), ring, reorder=True),
        ):
            theirs, ours = make(WORLD), make(comm)
            assert (ours == MPI.COMM_NULL) == (theirs == MPI.COMM_NULL) == last
            if not last:
                assert works(ours)
                assert moves_data_by(ours, transport)
                theirs.Free()
                ours.Free()
            ends_as_a_freed_one_of_mpi4pys(ours, theirs)


def ends_as_a_freed_one_of_mpi4pys(ours: Any, theirs: Any) -> None:
    assert ours == MPI.COMM_NULL == pickle.loads(pickle.dumps(ours)) == copy.copy(ours)
    calls = [
        ("Dup",),
        ("Split", 0),
        ("Create_cart", [1]),
        ("Create_graph", [1], [0]),
        ("Create_dist_graph", [0], [1], [0]),
        ("Create_dist_graph_adjacent", [0], [0]),
        ("Barrier",),
        ("Barrier_init",),
    ]
    if isinstance(theirs, MPI.Cartcomm):
        calls += [("Sub", [True])]
    for name, *arguments in calls:
        assert error_of(ours, name, *arguments) == error_of(theirs, name, *arguments), name


def error_of(comm: Any, name: str, *arguments: Any) -> int:
    """The class of MPI's error of a call that must fail; its text may hold addresses."""
    try:
        getattr(comm, name)(*arguments)
    except MPI.Exception as error:
        return error.Get_error_class()
    except NotImplementedError:
        return MPI.ERR_UNSUPPORTED_OPERATION
    raise AssertionError(f"{name} of {comm!r} is no error")


@promise("direct", "mpi", "pickle")
def parts_without_a_dimension_are_mpi4pys(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        grids = [parent.Create_cart([RANKS, 1]) for parent in (WORLD, comm)]
        theirs, ours = (grid.Sub([False, False]) for grid in grids)
        assert (ours == MPI.COMM_NULL) == (theirs == MPI.COMM_NULL)
        if ours:  # Intel MPI gives COMM_NULL to all ranks but one
            assert (ours.size, ours.ndim) == (theirs.size, theirs.ndim) == (1, 0)
            assert works(ours)
            assert moves_data_by(ours, transport)
            theirs.Free()
            ours.Free()
        for grid in grids:
            grid.Free()


@promise("direct", "mpi", "pickle")
def arguments_that_mpi_refuses_leave_it_usable(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        for name, *arguments in (
            ("Create_cart", [RANKS + 1]),
            ("Create_cart", [1], [True, False]),
            ("Create_dist_graph", [RANK], [1], [0, 0]),
        ):
            with refused((MPI.Exception, ValueError), ""):
                getattr(comm, name)(*arguments)
            assert works(comm), name


@promise("direct", "mpi", "pickle")
def what_else_makes_communicators_is_mpi4pys_own(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        half = comm.Split(RANK % 2)
        inter = half.Create_intercomm(0, comm, 1 - RANK % 2, tag=7)
        whole = inter.Merge(high=bool(RANK % 2))
        assert whole.allreduce(1) == RANKS
        with Communicator(whole, transport=transport) as again:
            assert works(again)
        for communicator in (whole, inter, half):
            communicator.Free()
        group = comm.Get_group()
        try:
            made = Communicator.Create_from_group(group, "of a group")
        except NotImplementedError:
            made = MPI.Intracomm()
        if made:
            assert type(made) is MPI.Intracomm
            assert made.allreduce(1) == RANKS
            made.Free()
        group.Free()


@promise("direct", "mpi", "pickle")
def an_alias_of_mpi4pys_is_mpis(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        alias = MPI.Intracomm(comm)
        y = np.zeros(3)
        alias.Allreduce(np.ones(3), y)
        assert y.tolist() == [RANKS] * 3
        assert works(comm)


@promise
def who_waits_in_direct_for_a_rank_that_revokes_gets_an_error() -> None:
    try:
        MPI.COMM_SELF.Dup().Revoke()
    except NotImplementedError:
        return
    comm = Communicator(WORLD, transport="direct")
    whole = comm.Shrink()
    assert works(whole)
    assert (whole.size, moves_data_by(whole, "direct")) == (RANKS, True)
    whole.Free()
    with refused(MPI.Exception if RANK == 1 else hbmcomm.PeerError, ""):
        if RANK == 1:
            comm.Revoke()
        comm.Barrier()
    WORLD.Barrier()


if __name__ == "__main__":
    keep()
