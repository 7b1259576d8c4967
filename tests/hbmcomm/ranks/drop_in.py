"""Rank program: what a Communicator promises beside its collectives. Prints "kept" on each rank."""

import contextlib
from collections.abc import Iterator

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm import Communicator

WORLD = MPI.COMM_WORLD


@contextlib.contextmanager
def refused(error: type[Exception], words: str) -> Iterator[None]:
    try:
        yield
    except error as found:
        assert words in str(found), found
    else:
        raise AssertionError(f"no {error.__name__} with {words!r}")


def construction_says_what_is_wrong() -> None:
    with refused(TypeError, "needs a communicator"):
        Communicator()
    with refused(TypeError, "found str"):
        Communicator("world")  # type: ignore[arg-type]
    with refused(ValueError, "COMM_NULL"):
        Communicator(MPI.COMM_NULL)
    with refused(ValueError, "known: auto, mpi, pickle"):
        Communicator(WORLD, transport="direct")
    with refused(ValueError, "regular"):
        Communicator(WORLD, kind="hbm")
    with refused(hbmcomm.KindUnavailable, "hbw"):
        Communicator(WORLD, kind="hbw")


def one_rank_without_the_kind_is_an_error_on_all() -> None:
    nodes = (0,) if WORLD.rank else (77,)
    with refused(hbmcomm.KindUnavailable, "rank 0"):
        Communicator(WORLD, kind="regular", nodes=nodes)


def traffic_never_meets_the_wrapped_communicators() -> None:
    with Communicator(WORLD) as comm:
        assert MPI.Comm.Compare(comm, WORLD) == MPI.CONGRUENT
        assert isinstance(comm, MPI.Intracomm)
    assert comm == MPI.COMM_NULL
    WORLD.Barrier()


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
    nobody = comm.Split(MPI.UNDEFINED)
    assert nobody == MPI.COMM_NULL
    comm.Free()


def arrays_live_in_its_kind() -> None:
    with Communicator(WORLD, kind="regular") as comm:
        x = comm.full((3, 4), 7, "float32")
        y = comm.empty_like(x)
        assert (y.shape, y.dtype) == (x.shape, x.dtype)
        assert not comm.zeros(5, "int64").any()
        assert comm.asarray([1, 2, 3], "int32").tolist() == [1, 2, 3]
        assert x.ctypes.data % 64 == 0
        comm.Allreduce(x, y)
        assert (y == 7 * comm.size).all()
    assert (y == 7 * WORLD.size).all()  # arrays outlive their communicator


def every_form_of_buffer_is_taken(transport: str) -> None:
    with Communicator(WORLD, transport=transport) as comm:
        text = bytearray(b"hbm" if comm.rank == 0 else b"...")
        comm.Bcast(text)
        assert text == b"hbm"
        column = MPI.INT32_T.Create_vector(3, 1, 2).Commit()
        matrix = np.arange(6, dtype="i4") if comm.rank == 0 else np.zeros(6, "i4")
        comm.Bcast([matrix, 1, column])
        assert matrix[::2].tolist() == [0, 2, 4]
        assert comm.rank == 0 or not matrix[1::2].any()
        part = np.full(comm.rank + 1, comm.rank, "i4")
        counts = list(range(1, comm.size + 1))
        whole = np.empty(sum(counts), "i4")
        comm.Gatherv(part, (whole, counts) if comm.rank == 0 else None)
        assert comm.rank or whole.tolist() == [r for r in range(comm.size) for _ in range(r + 1)]
        with refused(BufferError, "contiguous"):
            comm.Bcast(np.zeros((4, 4))[:, 1])
        column.Free()


def a_message_longer_than_its_buffer_is_an_error() -> None:
    with Communicator(WORLD, transport="pickle") as comm:
        buffer = np.zeros(4 if comm.rank == 0 else 2)
        if comm.rank == 0:
            comm.Bcast(buffer)
        else:
            with refused(MPI.Exception, "trunc"):
                comm.Bcast(buffer)


def persistent_forms_are_mpi4pys() -> None:
    with Communicator(WORLD) as comm:
        x, y = comm.full(8, 1.0), comm.zeros(8)
        try:
            plan = comm.Allreduce_init(x, y)
        except NotImplementedError:
            return
        plan.Start()
        plan.Wait()
        assert (y == comm.size).all()
        plan.Free()


def an_error_inside_with_does_not_wait_for_the_others() -> None:
    with contextlib.suppress(ZeroDivisionError), Communicator(WORLD) as comm:
        if comm.rank == 0:
            raise ZeroDivisionError
    WORLD.Barrier()


if __name__ == "__main__":
    construction_says_what_is_wrong()
    one_rank_without_the_kind_is_an_error_on_all()
    traffic_never_meets_the_wrapped_communicators()
    arrays_live_in_its_kind()
    a_message_longer_than_its_buffer_is_an_error()
    persistent_forms_are_mpi4pys()
    an_error_inside_with_does_not_wait_for_the_others()
    for each in ("mpi", "pickle"):
        derived_communicators_keep_transport_kind_and_nodes(each)
        every_form_of_buffer_is_taken(each)
    print("kept", flush=True)
