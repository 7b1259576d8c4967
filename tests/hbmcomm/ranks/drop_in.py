"""Rank program: what a Communicator promises beside its collectives. For three ranks."""

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator
from hbmcomm.transports import type_map
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD


@promise
def construction_says_what_is_wrong() -> None:
    with Communicator() as world, refused(TypeError, "Communicator() to wrap MPI.COMM_WORLD"):
        type(world)()
    with refused(TypeError, "found str"):
        Communicator("world")  # type: ignore[arg-type]
    with refused(ValueError, "COMM_NULL"):
        Communicator(MPI.COMM_NULL)
    with refused(ValueError, "unknown kind of memory ''"):
        Communicator(WORLD, kind="")
    with refused(ValueError, "known: auto, direct, hierarchical, mpi, pickle"):
        Communicator(WORLD, transport="pigeon")
    with refused(ValueError, "regular"):
        Communicator(WORLD, kind="hbm")
    with refused(hbmcomm.KindUnavailable, "hbw"):
        Communicator(WORLD, kind="hbw")
    for other, words in ({"kind": "hbw"}, "kind='hbw'"), ({"nodes": [0]}, "nodes=(0,)"):
        with refused(ValueError, f"rank 0: device='/dev/null' and {words}"):
            Communicator(WORLD, device="/dev/null", **other)  # type: ignore[arg-type]
    with refused(ValueError, "rank 0: device='/dev/null' and transport='mpi'"):
        Communicator(WORLD, device="/dev/null", transport="mpi")


@promise
def a_name_that_it_lacks_is_an_attribute_error_and_close_names_free() -> None:
    with Communicator() as comm:
        with refused(AttributeError, "has no attribute 'close'; Free()"):
            comm.close()  # type: ignore[attr-defined]
        assert not hasattr(comm, "close") and not hasattr(comm, "nothing")


@promise
def left_out_it_is_the_world_for_classes_of_a_users_own_too() -> None:
    class Counted(Communicator):
        pass

    for made in (Communicator(), Communicator(transport="mpi"), Counted(kind="regular")):
        with made as comm:
            assert MPI.Comm.Compare(comm, WORLD) == MPI.CONGRUENT
            assert comm.allreduce(1) == WORLD.size
            heir = comm.Dup()
            assert isinstance(heir, type(comm))
            heir.Free()


@promise("direct", "hierarchical", "mpi", "pickle")
def its_repr_says_what_it_is(transport: str) -> None:
    here = f"rank {WORLD.rank} of {WORLD.size}"
    memory = f"transport {transport}, kind regular on node 0"
    comm = Communicator(kind="regular", transport=transport, nodes=[0])
    assert repr(comm) == f"<Communicator: {here}, {memory}>", repr(comm)
    grid = comm.Create_cart([WORLD.size, 1])
    assert repr(grid) == f"<Communicator and Cartcomm: {here}, {memory}>", repr(grid)
    for communicator in (grid, comm):
        communicator.Free()
        assert repr(communicator).endswith(": COMM_NULL>"), repr(communicator)


@promise
def its_repr_neither_decides_nor_fails() -> None:
    with Communicator(kind="regular", nodes=[0]) as comm:
        later, request = comm.Idup()
        request.Wait()
        decided = f"transport {comm.transport}"
        if comm.transport == "direct":
            assert "transport direct or hierarchical or mpi, " in repr(later), repr(later)
        later.Barrier()
        assert decided in repr(later)
        later.Free()
        bare = MPI.Intracomm.__new__(type(comm), WORLD)  # as mpi4py makes what Ishrink gives
        assert repr(bare) == f"<Communicator: rank {WORLD.rank} of {WORLD.size}>"


@promise
def one_rank_without_the_kind_is_an_error_on_all() -> None:
    nodes = (0,) if WORLD.rank else (77,)
    with refused(hbmcomm.KindUnavailable, "rank 0"):
        Communicator(WORLD, kind="regular", nodes=nodes)


@promise
def an_argument_of_a_wrong_type_on_one_rank_is_an_error_on_all() -> None:
    wrong: tuple[tuple[type[Exception], dict[str, Any], str], ...] = (
        (TypeError, {"nodes": 3}, "nodes=3: not a list of NUMA nodes"),
        (TypeError, {"device": 3}, "os.PathLike"),
        (ValueError, {"transport": ["mpi"]}, "unknown transport ['mpi']"),
        (ValueError, {"kind": 3}, "unknown kind of memory 3"),
    )
    for error, arguments, text in wrong:
        with refused(error, text):
            Communicator(WORLD, **arguments if WORLD.rank == 0 else {})


@promise
def it_is_a_duplicate_and_frees_that_alone() -> None:
    wrapped = WORLD.Dup()
    with Communicator(wrapped) as comm:
        assert MPI.Comm.Compare(comm, wrapped) == MPI.CONGRUENT
        assert isinstance(comm, MPI.Intracomm)
    assert comm == MPI.COMM_NULL
    wrapped.Barrier()
    wrapped.Free()
    with Communicator(WORLD) as comm:
        comm.Free()  # twice is once


@promise("hierarchical", "mpi", "pickle")
def a_class_of_a_users_own_stays_that_class(transport: str) -> None:
    class Counted(Communicator):
        calls = 0

        def Bcast(self, buf: object, root: int = 0) -> None:
            self.calls += 1
            super().Bcast(buf, root)

    comm = Counted(WORLD, transport=transport)
    heir = comm.Split(0)
    x = np.full(3, comm.rank)
    heir.Bcast(x)
    assert isinstance(heir, Counted)
    assert (heir.calls, heir.transport, x.tolist()) == (1, transport, [0, 0, 0])
    again = type(comm)(heir, transport="mpi")
    assert (again.transport, isinstance(again, Counted)) == ("mpi", True)
    for communicator in (again, heir, comm):
        communicator.Free()


@promise("hierarchical", "mpi", "pickle")
def derived_communicators_keep_transport_kind_and_nodes(transport: str) -> None:
    comm = Communicator(WORLD, kind="regular", transport=transport, nodes=[0])
    group = comm.Get_group()
    for heir in (
        comm.Dup(),
        comm.Clone(),
        comm.Dup_with_info(MPI.INFO_NULL),
        comm.Split(0, -comm.rank),
        comm.Split_type(MPI.COMM_TYPE_SHARED),
        comm.Create(group),
        comm.Create_group(group),
    ):
        assert type(heir) is type(comm), heir
        assert (heir.kind, heir.nodes, heir.transport) == ("regular", (0,), transport)
        sums = heir.allreduce(1)
        assert sums == heir.size
        heir.Free()
    later, request = comm.Idup()
    request.Wait()
    assert (later.kind, later.nodes, later.transport) == ("regular", (0,), transport)
    assert later.allreduce(1) == later.size
    later.Free()
    nobody = comm.Split(MPI.UNDEFINED)
    assert nobody == MPI.COMM_NULL
    comm.Free()


@promise
def arrays_live_in_its_kind() -> None:
    with Communicator(WORLD, kind="regular") as comm:
        x = comm.full((3, 4), 7, "float32")
        y = comm.empty_like(x)
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        assert not comm.zeros(5, "int64").any()
        assert comm.ones(5, "int64").tolist() == [1] * 5
        for like, values in ((comm.zeros_like, [0, 0]), (comm.ones_like, [1, 1])):
            assert (like([2, 3]).tolist(), like([2, 3]).dtype) == (values, np.dtype("int64"))
            assert like(x[0, :2], "int8").dtype == np.dtype("int8")
            assert hbmcomm.source(like(x)) == hbmcomm.source(x)
        assert comm.asarray([1, 2, 3], "int32").tolist() == [1, 2, 3]
        assert comm.empty_like(np.asfortranarray(np.ones((2, 3)))).flags.f_contiguous
        assert x.ctypes.data % 64 == 0
        comm.Allreduce(x, y)
        assert (y == 7 * comm.size).all()
    assert (y == 7 * WORLD.size).all()  # arrays outlive their communicator


@promise
def a_message_of_another_length_is_an_error() -> None:
    with Communicator(WORLD, transport="pickle") as comm:
        for other in (2, 5):
            buffer = np.zeros(4 if comm.rank == 0 else other)
            if comm.rank == 0:
                comm.Bcast(buffer)
            else:
                with refused(MPI.Exception, "trunc"):
                    comm.Bcast(buffer)
        with refused(MPI.Exception, "trunc") if comm.rank == 0 else contextlib.nullcontext():
            comm.Gather(np.ones(1), np.zeros((comm.size, 2)) if comm.rank == 0 else None)


@promise("hierarchical", "mpi", "pickle")
def sums_are_the_same_bits_everywhere_and_each_time(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        for count in (1, 100, 5000, 300_000):
            x = np.random.default_rng(comm.rank).standard_normal(count).astype("f4")
            sums = []
            for _ in range(3):
                y = np.empty_like(x)
                comm.Allreduce(x, y)
                sums.append(y.tobytes())
            assert comm.allgather(sums) == [sums] * comm.size, count
            if transport != "mpi":  # Intel MPI adds in another order from call to call
                assert len(set(sums)) == 1, count


@promise("direct", "hierarchical", "mpi", "pickle")
def persistent_forms_are_mpi4pys_and_plans(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        x, y = comm.full(8, 1.0), comm.zeros(8)
        try:
            plan = comm.Allreduce_init(x, y)
        except NotImplementedError:
            return
        assert isinstance(plan, hbmcomm.Plan)
        assert isinstance(plan, MPI.Prequest)
        plan.Start()
        plan.Wait()
        assert (y == comm.size).all()
        for run in range(3):
            x[:] = run
            plan()
            assert (y == run * comm.size).all()
        plan.Free()


@promise("direct", "hierarchical", "mpi", "pickle")
def a_plan_of_a_freed_communicator_is_refused(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    plan = comm.Allreduce_init(comm.full(8, 1.0), comm.zeros(8))
    comm.Free()
    with refused(hbmcomm.HbmcommError, "this communicator was freed; call Free() after"):
        plan()


@promise
def plans_that_only_mpi_can_run_are_plans_too() -> None:
    with Communicator(WORLD, transport="direct") as comm:
        pairs = MPI.Op.Create(lambda given, taken, _type: None)
        try:
            made = [
                comm.Allreduce_init(np.ones(2), np.ones(2), pairs),
                comm.Bcast_init([MPI.BOTTOM, 0, MPI.BYTE]),
            ]
        except NotImplementedError:
            made = []
        for plan in made:
            assert isinstance(plan, hbmcomm.Plan)
            plan()
            plan.Free()
        pairs.Free()


@promise("direct", "hierarchical")
def data_may_lie_before_its_address_or_have_no_bytes(transport: str) -> None:
    """Intel MPI 2021.18 itself, and so transport mpi, waits for ever in this Gatherv."""
    before = MPI.INT.Create_hindexed([1, 1], [-8, 0]).Commit()
    nothing = MPI.INT.Create_contiguous(0).Commit()
    with Communicator(WORLD, transport=transport) as comm:
        x = np.arange(10, dtype="i") if comm.rank == 0 else np.zeros(10, "i")
        comm.Bcast([x[4:], 1, before])
        assert (x[[2, 4]] == [2, 4]).all() and (comm.rank == 0 or x.sum() == 6)
        sent = [x, 1, nothing] if comm.rank else np.arange(3, dtype="i")
        taken = np.zeros(3, "i")
        into = [taken, [3] + [0] * (comm.size - 1)] if comm.rank == 0 else None
        comm.Gatherv(sent, into)
        assert comm.rank or (taken == [0, 1, 2]).all()
    before.Free()
    nothing.Free()


@promise("direct", "hierarchical")
def one_rank_may_give_absolute_addresses(transport: str) -> None:
    """Of two arrays, for one message, where the other ranks give plain arrays."""
    x, y = np.arange(2.0) + WORLD.rank, np.full(5, 7.0)
    places = [MPI.Get_address(x), MPI.Get_address(y[1:])]
    both = MPI.DOUBLE.Create_hindexed([2, 2], places).Commit()
    absolute, everyone = [MPI.BOTTOM, 1, both], range(WORLD.size)
    first = WORLD.rank == 0
    with Communicator(WORLD, transport=transport) as comm:
        plain = np.full(4, float(comm.rank))
        comm.Bcast(absolute if first else plain)
        assert first or (plain == [0, 1, 7, 7]).all(), plain
        taken = np.zeros((comm.size, 4))
        comm.Allgather(absolute if first else plain, taken)
        assert (taken == [0, 1, 7, 7]).all(), taken
        comm.Gatherv(plain, [taken, [4] * comm.size] if first else None)
        comm.Scatter(taken + np.c_[everyone] if first else None, absolute if first else plain)
        assert first or (plain == np.array([0, 1, 7, 7]) + comm.rank).all(), plain
        plan = comm.Bcast_init(absolute if comm.rank == 1 else plain, 1)
        for number in range(2):
            x[:], y[:] = number, -number
            plan()
            assert comm.rank == 1 or (plain == [number, number, -number, -number]).all(), plain
        comm.Ibcast(absolute if first else np.arange(4.0), 1).Wait()
        assert not first or (np.r_[x, y] == [0, 1, -1, 2, 3, -1, -1]).all(), y
    both.Free()


def made_at_random(rng: np.random.Generator, depth: int) -> MPI.Datatype:
    """A datatype whose entries do not overlap, made by up to `depth` constructors of MPI."""
    if depth == 0:
        return (MPI.BYTE, MPI.INT, MPI.DOUBLE, MPI.DOUBLE_INT, MPI.SHORT_INT)[rng.integers(5)].Dup()
    base, two = made_at_random(rng, depth - 1), made_at_random(rng, depth - 1)
    extent, (a, b, c) = base.extent, (int(number) for number in rng.integers(1, 4, 3))
    low = -int(rng.integers(0, 3)) * extent
    order = (MPI.ORDER_C, MPI.ORDER_F)[rng.integers(2)]
    block, default = MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_DFLT_DARG
    makers: list[Callable[[], MPI.Datatype]] = [
        lambda: base.Create_contiguous(a),
        lambda: base.Create_vector(a, b, b + c),
        lambda: base.Create_hvector(a, b, b * extent + 8 * c),
        lambda: base.Create_indexed([a, b, c], [9, -3, 1]),
        lambda: base.Create_hindexed([a, b], [low, 3 * extent]),
        lambda: base.Create_indexed_block(b, [8, 0, 4]),
        lambda: base.Create_hindexed_block(b, [low, 4 * extent]),
        lambda: base.Create_subarray([a + 2, b + 2, c + 2], [a + 1, 2, c + 1], [1, b, 1], order),
        lambda: base.Create_darray(2, a % 2, [a + 4], [block], [default], [2], order),
        lambda: base.Create_resized(low, 9 * extent),
        lambda: MPI.Datatype.Create_struct([a, b], [low, 4 * extent], [base, two]),
    ]
    made = makers[rng.integers(len(makers))]()
    for part in (base, two):
        part.Free()
    return made


@promise
def bytes_of_datatypes_are_where_mpi_has_them() -> None:
    """Of datatypes of all constructors; a long column of a matrix is as quick as its entries."""
    rng = np.random.default_rng(WORLD.rank)
    for _ in range(300):
        datatype = made_at_random(rng, int(rng.integers(1, 4))).Commit()
        low, extent = datatype.Get_true_extent()
        size = datatype.Pack_size(1, MPI.COMM_SELF)
        if 0 < datatype.size <= size and extent < 10**6:
            packed = rng.integers(1, 256, size).astype("u1")
            before = max(0, -low, -datatype.lb)
            theirs = np.zeros(before + max(low, 0) + extent + abs(datatype.extent), "u1")
            ours = theirs.copy()
            entry = MPI.buffer.fromaddress(theirs[before:].ctypes.data, datatype.extent)
            datatype.Unpack(packed, 0, entry, MPI.COMM_SELF)
            at = 0
            for offset, length in type_map.runs(datatype):
                ours[before + offset :][:length] = packed[at : at + length]
                at += length
            assert at == datatype.size and (ours == theirs).all(), datatype.decode()
        datatype.Free()
    column = MPI.DOUBLE.Create_vector(1000, 1, 10**7).Commit()  # of 80 GB
    assert (type_map.runs(column) == [[80_000_000 * row, 8] for row in range(1000)]).all()
    column.Free()


@promise
def requests_that_mpi_completed_let_their_buffers_go() -> None:
    with Communicator(WORLD, transport="direct") as comm:
        given = []
        for _ in range(6):
            x, y = np.ones(2**10), np.zeros(2**10)
            given.append(weakref.ref(x))
            MPI.Request.Waitall([comm.Iallreduce(x, y)])
            assert y[0] == comm.size
            del x, y
            assert sum(reference() is not None for reference in given) < 4


if __name__ == "__main__":
    keep()
