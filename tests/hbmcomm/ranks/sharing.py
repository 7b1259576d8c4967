"""Rank program: views of each other's arrays, flags, and what is refused. For three ranks."""

import gc
import pickle

import numpy as np
from mpi4py import MPI

import hbmcomm
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

ROUNDS, COUNT = 300, 1000
FAR = 16  # words from one rank's flag to another's
WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size

comm = hbmcomm.Communicator(kind="regular", transport="direct")


@promise
def a_view_has_the_owners_memory_and_what_either_writes_both_see() -> None:
    for shape, dtype in (((3, 5), "f8"), ((), "i4"), ((0, 7), "c16"), (4, [("a", "i2")])):
        own = comm.zeros(shape, dtype)
        own[...] = RANK + 1
        views = [comm.attach(shared) for shared in comm.allgather(comm.share(own))]
        for rank, view in enumerate(views):
            assert (view.shape, view.dtype) == (own.shape, own.dtype)
            assert (view == np.array(rank + 1, dtype)).all()
        assert not own.size or views[RANK].ctypes.data == own.ctypes.data
        comm.Barrier()
        views[(RANK + 1) % SIZE][...] = 50 + RANK
        comm.Barrier()
        assert (own == np.array(50 + (RANK - 1) % SIZE, dtype)).all()
    part = comm.share(comm.zeros((8, 4))[2:4])
    assert part.shape == (2, 4) and part.nbytes == 64
    assert pickle.loads(pickle.dumps(part)) == part
    assert comm.arena_ranks == tuple(range(SIZE))


@promise
def data_go_around_with_a_number_and_are_overwritten_once_the_next_rank_has_read_them() -> None:
    data, counters = comm.zeros(COUNT, "i8"), comm.zeros(SIZE * FAR, "u8")
    names = comm.allgather((comm.share(data), comm.share(counters)))
    before, after = (RANK - 1) % SIZE, (RANK + 1) % SIZE
    there = comm.attach(names[before][0])
    came = comm.flags(comm.attach(names[before][1])[:1], before)
    read = comm.flags(comm.attach(names[before][1])[FAR : FAR + 1])  # beside the reader's data
    written, taken = comm.flags(counters[:1]), comm.flags(counters[FAR : FAR + 1], after)
    for number in range(1, ROUNDS + 1):
        taken.wait(number - 1)
        data[:] = number * (RANK + 1)
        written.raise_to(number)
        came.wait(number)
        assert (there == number * (before + 1)).all()
        read.raise_to(number)
    comm.Barrier()
    many = comm.flags(counters)
    many.raise_to(ROUNDS + 1, 2, 5)
    assert len(many) == counters.size and many.test(ROUNDS + 1, 6)
    for number in (np.int8, np.uint16, np.int32, np.uint64):
        many.raise_to(ROUNDS + 1, number(2), number(5))
        many.wait(ROUNDS + 1, number(6))
        assert many.test(ROUNDS + 1, number(6))
    assert counters[2:7].tolist() == [ROUNDS + 1] * 5 and not counters[7]
    assert came.test(ROUNDS) and not came.test(ROUNDS + 9)
    for act in (lambda: many.wait(1, counters.size), lambda: many.test(1, -1)):
        with refused(IndexError, f"there are {counters.size}"):
            act()
    with refused(IndexError, f"there are {counters.size}"):
        many.raise_to(1, counters.size - 1, 2)
    with refused(IndexError, f"there are {counters.size}"):
        many.raise_to(1, 1, np.int8(127))  # of which the sum is negative
    comm.Barrier()


@promise
def a_call_in_flight_advances_while_its_rank_waits() -> None:
    counters = comm.zeros(1, "u8")
    names = comm.allgather(comm.share(counters))
    total = np.zeros(50_000)
    if RANK == 0:
        request = comm.Iallreduce(np.ones(50_000), total)
        comm.flags(comm.attach(names[1]), 1).wait(1)
        request.Wait()
    else:
        comm.Allreduce(np.ones(50_000), total)
        if RANK == 1:
            comm.flags(counters).raise_to(1)
    assert (total == SIZE).all()


@promise
def what_names_no_shared_memory_of_its_rank_is_refused() -> None:
    own = comm.zeros(8, "u8")
    name = comm.share(own)
    with refused(ValueError, "not in this rank's arena; make it with"):
        comm.share(np.zeros(3))
    with refused(ValueError, "give an array in C order"):
        comm.share(comm.zeros((4, 4))[:, 1])
    with refused(TypeError, "found list; give a NumPy array"):
        comm.share([1.0])  # type: ignore[arg-type]
    with refused(TypeError, "found NoneType; give what share() returned"):
        comm.attach(None)  # type: ignore[arg-type]
    for rank in (-1, SIZE):
        for act in (
            lambda: comm.attach(name._replace(rank=rank)),  # noqa: B023
            lambda: comm.flags(own, rank),  # noqa: B023
        ):
            try:
                act()
            except MPI.Exception as error:
                assert error.Get_error_class() == MPI.ERR_RANK
            else:
                raise AssertionError(f"rank {rank} was accepted")
    for offset in (-64, 2**50):
        with refused(hbmcomm.PeerError, "named memory that is not its own"):
            comm.attach(name._replace(offset=offset))
    with refused(hbmcomm.PeerError, "named memory that is not its own"):
        comm.attach(name._replace(shape=(2**60,)))
    with refused(ValueError, "is no array of an arena"):
        comm.attach(name._replace(dtype=np.dtype(object)))
    with refused(ValueError, "is no array of an arena"):
        comm.attach(name._replace(shape=(-1,)))
    for counters in (np.zeros(1, "u8"), comm.zeros(1, "i8"), own.view("u1")[4:12].view("u8")):
        with refused(ValueError, "give uint64 in memory that ranks share"):
            comm.flags(counters)
    with refused(TypeError, "integer"):
        comm.flags(own, "0")  # type: ignore[arg-type]
    others = comm.flags(own, (RANK + 1) % SIZE)
    if SIZE > 1:
        with refused(ValueError, f"raises these flags, as flags() was asked; this is rank {RANK}"):
            others.raise_to(1)
        assert own[0] == 0
    with hbmcomm.Communicator(kind="regular", transport="mpi") as plain:
        assert plain.arena_ranks == (RANK,)
        with refused(hbmcomm.ArenaUnavailable, "transport mpi shares no"):
            plain.share(own)
        with refused(hbmcomm.ArenaUnavailable, "transport mpi shares no"):
            plain.attach(name)


@promise
def a_freed_communicator_shares_nothing() -> None:
    own = comm.zeros(1, "u8")
    flags, name = comm.flags(own), comm.share(own)
    comm.Free()
    for act in (lambda: flags.raise_to(1), lambda: flags.wait(1), lambda: flags.test(1)):
        with refused(hbmcomm.PeerError, "(this one) freed it"):
            act()
    assert not own[0]
    for call in (lambda: comm.share(own), lambda: comm.attach(name), lambda: comm.flags(own)):
        try:
            call()
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_COMM
        else:
            raise AssertionError("a freed communicator was accepted")


@promise
def shared_memory_stays_until_all_have_left() -> None:
    comm = hbmcomm.Communicator(kind="regular", transport="direct")
    heir = comm.Dup()
    own = comm.ones(1 << 20, "u1")
    place = own.ctypes.data
    view = comm.attach(comm.allgather(comm.share(own))[(RANK + 1) % SIZE])
    del own
    gc.collect()
    others = [heir.zeros(1 << 20, "u1") for _ in range(8)]
    assert all(abs(array.ctypes.data - place) >= 1 << 20 for array in others)
    comm.Barrier()
    view[:] = 9
    comm.Barrier()
    assert not any(array.any() for array in others)
    del view, others
    comm.Free()
    heir.Barrier()
    kept = list[np.ndarray]()
    while not kept or kept[-1].ctypes.data != place:
        kept.append(heir.zeros(1 << 20, "u1"))
        assert len(kept) < 100, "the memory is never used again"
    heir.Free()


if __name__ == "__main__":
    keep()
