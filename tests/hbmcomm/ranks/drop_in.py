"""Rank program: what a Communicator promises beside its collectives. Prints "kept" on each rank."""

import contextlib
import gc
import weakref
from typing import Any

import numpy as np
from mpi4py import MPI
from refusal import refused

import hbmcomm
from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD


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


def a_name_that_it_lacks_is_an_attribute_error_and_close_names_free() -> None:
    with Communicator() as comm:
        with refused(AttributeError, "has no attribute 'close'; Free()"):
            comm.close()  # type: ignore[attr-defined]
        assert not hasattr(comm, "close") and not hasattr(comm, "nothing")


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


def its_repr_says_what_it_is(transport: str) -> None:
    here = f"rank {WORLD.rank} of {WORLD.size}"
    memory = f"transport {transport}, kind regular on node 0"
    comm = Communicator(kind="regular", transport=transport, nodes=[0])
    assert repr(comm) == f"<Communicator: {here}, {memory}>", repr(comm)
    grid = comm.Create_cart([WORLD.size, 1])
    assert repr(grid) == f"<Communicator and Cartcomm: {here}, {memory}>", repr(grid)
    for each in (grid, comm):
        each.Free()
        assert repr(each).endswith(": COMM_NULL>"), repr(each)


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


def one_rank_without_the_kind_is_an_error_on_all() -> None:
    nodes = (0,) if WORLD.rank else (77,)
    with refused(hbmcomm.KindUnavailable, "rank 0"):
        Communicator(WORLD, kind="regular", nodes=nodes)


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


def one_that_is_dropped_takes_nothing_with_it() -> None:
    comm = Communicator(WORLD)
    heir, x = comm.Dup(), comm.full(1000, 1.0)
    del comm
    gc.collect()
    heir.Allreduce(MPI.IN_PLACE, x)
    assert (x == heir.size).all()
    heir.Free()


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
    for each in (again, heir, comm):
        each.Free()


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
        assert x.ctypes.data % 64 == 0
        comm.Allreduce(x, y)
        assert (y == 7 * comm.size).all()
    assert (y == 7 * WORLD.size).all()  # arrays outlive their communicator


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


def objects_travel_as_ever(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        assert comm.bcast({"from": comm.rank}, root=comm.size - 1) == {"from": comm.size - 1}
        assert comm.allgather(str(comm.rank)) == [str(rank) for rank in range(comm.size)]
        assert comm.allreduce([comm.rank]) == list(range(comm.size))
        comm.isend("self", comm.rank).wait()
        assert comm.recv(source=comm.rank) == "self"


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


def a_plan_of_a_freed_communicator_is_refused(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    plan = comm.Allreduce_init(comm.full(8, 1.0), comm.zeros(8))
    comm.Free()
    with refused(hbmcomm.HbmcommError, "this communicator was freed; call Free() after"):
        plan()


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


def requests_that_mpi_completed_let_their_buffers_go() -> None:
    with Communicator(WORLD, transport="direct") as comm:
        given = []
        for _ in range(6):
            x, y = np.ones(2**10), np.zeros(2**10)
            given.append(weakref.ref(x))
            MPI.Request.Waitall([comm.Iallreduce(x, y)])
            assert y[0] == comm.size
            del x, y
            assert sum(each() is not None for each in given) < 4


def an_error_inside_with_does_not_wait_for_the_others() -> None:
    with contextlib.suppress(ZeroDivisionError), Communicator(WORLD) as comm:
        if comm.rank == 0:
            raise ZeroDivisionError
    WORLD.Barrier()


if __name__ == "__main__":
    construction_says_what_is_wrong()
    a_name_that_it_lacks_is_an_attribute_error_and_close_names_free()
    left_out_it_is_the_world_for_classes_of_a_users_own_too()
    its_repr_says_what_it_is("direct")
    its_repr_neither_decides_nor_fails()
    one_rank_without_the_kind_is_an_error_on_all()
    an_argument_of_a_wrong_type_on_one_rank_is_an_error_on_all()
    it_is_a_duplicate_and_frees_that_alone()
    one_that_is_dropped_takes_nothing_with_it()
    arrays_live_in_its_kind()
    a_message_of_another_length_is_an_error()
    an_error_inside_with_does_not_wait_for_the_others()
    persistent_forms_are_mpi4pys_and_plans("direct")
    plans_that_only_mpi_can_run_are_plans_too()
    for each in ("direct", "hierarchical"):
        data_may_lie_before_its_address_or_have_no_bytes(each)
    requests_that_mpi_completed_let_their_buffers_go()
    for each in ("hierarchical", "mpi", "pickle"):
        its_repr_says_what_it_is(each)
        a_class_of_a_users_own_stays_that_class(each)
        derived_communicators_keep_transport_kind_and_nodes(each)
        sums_are_the_same_bits_everywhere_and_each_time(each)
        objects_travel_as_ever(each)
        persistent_forms_are_mpi4pys_and_plans(each)
    for each in ("direct", "hierarchical", "mpi", "pickle"):
        a_plan_of_a_freed_communicator_is_refused(each)
    print("kept", flush=True)
