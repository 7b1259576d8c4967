"""Rank program: lower-case calls give what mpi4py's own give, and their errors hold nobody up."""

import contextlib
import os
import pickle
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hbmcomm import CallMismatch, Communicator, PeerError
from hbmcomm.transports.native import ffi, lib
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
TIMES = 300
TRANSPORTS = ("direct", "hierarchical")


def opened(transport: str) -> Communicator:
    return Communicator(WORLD, "regular", transport)


def plain(comm: Any) -> MPI.Intracomm:
    """Its calls as mpi4py does them."""
    return MPI.Intracomm(comm)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and bool(np.array_equal(one, other))
    return bool(one == other and type(one) is type(other))


def of_rank(rank: int) -> list[Any]:
    """Objects of every size, around the limits too; some ranks have long ones, some short ones."""
    rng = np.random.default_rng(rank)
    edges = [b"x" * (256 - less + rank) for less in range(0, 60, 7)]
    return [
        *(None, rank, 1.5 * rank, "é", {"a": rank, "b": [1, (2, 3)]}),
        *edges,
        *(bytes(rank * 5000), "x" * 10**6 * (rank % 2)),
        *(rng.random(size) for size in (0, 1, 3, 8192 * (rank + 1), 131_072 * (rank % 2))),
        np.arange(24, dtype="f4").reshape(4, 6)[:, ::2],
        np.array([1 + rank], "G"),
        [rng.random(5), rng.integers(0, 9, 7, "i1"), rng.random((300, 7)), bytes(3)],
        {"memory": bytearray(1000 * rank), "shape": (2, 3)},
    ]


@promise(*TRANSPORTS)
def every_call_gives_what_mpi4pys_gives(transport: str) -> None:
    with opened(transport) as comm:
        for own in zip(*map(of_rank, range(RANKS)), strict=True):
            for root in (0, RANKS - 1):
                calls: dict[str, Callable[[Any], Any]] = {
                    "bcast": lambda c: c.bcast(own[RANK], root),  # noqa: B023
                    "gather": lambda c: c.gather(own[RANK], root),  # noqa: B023
                    "scatter": lambda c: c.scatter(own if root == RANK else None, root),  # noqa: B023
                    "allgather": lambda c: c.allgather(own[RANK]),  # noqa: B023
                    "alltoall": lambda c: c.alltoall(own),  # noqa: B023
                }
                for name, call in calls.items():
                    result, expected = call(comm), call(plain(comm))
                    assert equal(result, expected), f"{name} from {root}: {str(result)[:200]}"


@promise(*TRANSPORTS)
def none_is_as_many_objects_as_there_are_ranks(transport: str) -> None:
    with opened(transport) as comm:
        assert comm.scatter(None) is None
        assert comm.alltoall(None) == plain(comm).alltoall(None) == [None] * RANKS


@promise(*TRANSPORTS)
def a_rank_alone_gets_its_own_objects(transport: str) -> None:
    with Communicator(MPI.COMM_SELF, "regular", transport) as comm:
        for thing in of_rank(RANK):
            results = [comm.allgather(thing), comm.alltoall([thing]), comm.gather(thing)]
            results += [comm.scatter([thing]), comm.bcast(thing), comm.reduce(thing)]
            expected = [[thing], [thing], [thing], thing, thing, thing]
            assert equal(results, expected), str(thing)[:100]
            assert comm.exscan(thing) is None


@promise(*TRANSPORTS)
def reductions_go_in_the_order_of_ranks(transport: str) -> None:
    with opened(transport) as comm:
        own = [RANK]
        for op in (MPI.SUM, lambda one, other: one + other):
            assert comm.allreduce(own, op) == list(range(RANKS))
            assert comm.reduce(own, op, RANKS - 1) == (
                list(range(RANKS)) if RANK == RANKS - 1 else None
            )
            assert comm.scan(own, op) == list(range(RANK + 1))
            assert comm.exscan(own, op) == (list(range(RANK)) or None)
        assert comm.allreduce((RANK, "value"), MPI.MAX) == (RANKS - 1, "value")
        assert (comm.allreduce(np.full(50_000, RANK)) == sum(range(RANKS))).all()


@promise("direct")
def short_objects_wait_for_nobody_whatever_thresholds_are_set(transport: str) -> None:
    thresholds = {"HBMCOMM_EAGER_BYTES": "0", "HBMCOMM_SHORT_BYTES": "0"}
    with mock.patch.dict(os.environ, thresholds):
        comm = opened(transport)
    for call, is_first in (
        (lambda: comm.bcast("short", 0), RANK == 0),
        (lambda: comm.scatter(["short"] * RANKS if RANK == 0 else None, 0), RANK == 0),
        (lambda: comm.gather("short", 0), RANK != 0),
    ):
        peers = range(1, RANKS) if RANK == 0 else [0]
        if not is_first:
            for peer in peers:
                WORLD.recv(source=peer)
        call()
        if is_first:
            for peer in peers:
                WORLD.send(None, peer)
    comm.Free()


@promise(*TRANSPORTS)
def the_root_of_bcast_gets_a_copy_as_all_others(transport: str) -> None:
    with opened(transport) as comm:
        for length in (3, 10_000, 100_000):
            own = [np.zeros(length), "a" * length, {"b": [1]}]
            copy = comm.bcast(own if RANK == 0 else None, 0)
            copy[0][:] = 1
            copy[2]["b"].append(2)
            assert not own[0].any() and own[2] == {"b": [1]} and copy[1] == own[1]
            assert copy[0].flags.writeable and copy[0].sum() == length


@promise(*TRANSPORTS)
def arrays_can_be_written_where_their_source_could_and_lie_as_their_type_needs(
    transport: str,
) -> None:
    with opened(transport) as comm:
        for size in (3, 100_000):
            source = np.zeros(size, "G")
            every = comm.allgather([bytes(1), source, np.ones(1, "u1"), source.copy()])
            for _, one, _, other in every:
                for array in (one, other):
                    assert array.flags.writeable and array.flags.aligned
                    array[:] = 1
                assert not np.shares_memory(one, other)
            source.flags.writeable = False
            assert not comm.bcast([source, 0], 0)[0].flags.writeable


class ZeroCopy(bytearray):
    """As in Python's documentation of pickle: it reads what owns the memory that it gets."""

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return self._reconstruct, (pickle.PickleBuffer(self),)

    @classmethod
    def _reconstruct(cls, memory: Any) -> Any:
        return cls(memoryview(memory).obj)


@promise(*TRANSPORTS)
def objects_that_offer_buffers_get_what_a_pickle_gives_them(transport: str) -> None:
    with opened(transport) as comm:
        for size in (3, 100_000):
            offered = map(pickle.PickleBuffer, (bytes(size), bytearray(size)))
            own = [ZeroCopy(bytes([RANK]) * size), np.ones(size), *offered]
            results = [comm.bcast(own, 0), *comm.allgather(own), *comm.alltoall([own] * RANKS)]
            expected = [plain(comm).bcast(own, 0), *plain(comm).allgather(own) * 2]
            assert equal(results, expected), str(results)[:200]
        with refused(pickle.PicklingError, "non-contiguous"):
            comm.allgather(pickle.PickleBuffer(np.zeros(8)[::2]))


class Unpicklable:
    def __reduce__(self) -> Any:
        raise ArithmeticError("it cannot be pickled")


@promise(*TRANSPORTS)
def what_cannot_be_pickled_is_an_error_where_it_is_and_holds_nobody_up(transport: str) -> None:
    wrong, last = Unpicklable(), RANKS - 1
    own = wrong if last == RANK else "right"
    every = [wrong if last == RANK else "right"] * RANKS
    with opened(transport) as comm:
        calls: dict[str, tuple[Callable[[], Any], bool]] = {
            "bcast": (lambda: comm.bcast(own, last), True),
            "scatter": (lambda: comm.scatter(every, last), True),
            "gather": (lambda: comm.gather(own, 0), RANK == 0),
            "allgather": (lambda: comm.allgather(own), True),
            "alltoall": (lambda: comm.alltoall(every), True),
            "reduce": (lambda: comm.reduce(own, root=0), RANK == 0),
            "allreduce": (lambda: comm.allreduce(own), True),
            "scan": (lambda: comm.scan(own), True),
            "exscan": (lambda: comm.exscan(own), True),
        }
        for name, (call, hears) in calls.items():
            if last == RANK:
                with refused(ArithmeticError, "it cannot be pickled"):
                    call()
            elif hears:
                with refused(PeerError, f"rank {last} has no object for {name}"):
                    call()
            else:
                call()
            assert comm.allgather(RANK) == list(range(RANKS)), name


@promise(*TRANSPORTS)
def another_number_of_objects_than_ranks_is_an_error_and_holds_nobody_up(transport: str) -> None:
    with opened(transport) as comm:
        for count in (RANKS - 1, RANKS + 1):
            if RANK == 0:
                with refused(ValueError, f"expecting {RANKS} items, got {count}"):
                    comm.scatter([1] * count, 0)
            else:
                with refused(PeerError, "rank 0 has no object for scatter"):
                    comm.scatter(None, 0)
        with refused((TypeError, PeerError)):
            comm.alltoall(7 if RANK == 0 else [1] * RANKS)


@promise(*TRANSPORTS)
def a_root_that_is_no_rank_is_mpis_error(transport: str) -> None:
    with opened(transport) as comm:
        for root in (-1, RANKS):
            with refused(MPI.Exception):
                comm.bcast(1, root)
        assert comm.bcast(RANK, np.int64(RANKS - 1)) == RANKS - 1


@promise(*TRANSPORTS)
def a_pickler_that_the_program_has_set_is_used(transport: str) -> None:
    MPI.pickle.__init__(lambda obj: b"own" + pickle.dumps(obj), lambda data: pickle.loads(data[3:]))
    try:
        with opened(transport) as comm:
            for thing in (RANK, np.arange(100_000) + RANK):
                assert equal(comm.allgather(thing)[RANK], thing)
            MPI.pickle.__init__(pickle.dumps, type_read)
            for thing in ("short", "x" * 5000):
                for call in (comm.allgather, comm.bcast):
                    assert equal(call(thing), getattr(plain(comm), call.__name__)(thing))
            MPI.pickle.__init__(lambda obj: b"", pickle.loads)  # mpi4py gives it nothing to load
            assert comm.allgather(RANK) == [None] * RANKS and comm.bcast(RANK) is None
    finally:
        MPI.pickle.__init__()


def type_read(data: Any) -> Any:
    return type(data), data.readonly, data.nbytes, pickle.loads(data.tobytes())


@promise(*TRANSPORTS)
def what_loading_raises_is_raised_once_the_call_is_over(transport: str) -> None:
    with opened(transport) as comm:
        with refused(ZeroDivisionError):
            comm.allgather(FailsToLoad())
        assert comm.bcast(RANK, 0) == 0


@promise(*TRANSPORTS)
def a_rank_without_memory_for_an_object_ends_the_waits_of_others(transport: str) -> None:
    last, thing = RANKS - 1, np.zeros(8 * 2**20)
    with contextlib.suppress(LookupError), opened(transport) as comm:
        if last == RANK:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            limits = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (used + thing.nbytes // 2, limits[1]))
        with refused((MemoryError, PeerError)):
            for _ in range(3):
                comm.bcast(thing if RANK == 0 else None, 0)
        if last == RANK:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        WORLD.Barrier()  # nobody leaves before all have an error
        raise LookupError


@promise(*TRANSPORTS)
def lengths_that_cannot_be_are_an_error(transport: str) -> None:
    heads = [(10_000, 0, 10, 0), (10, 3, 10, 0), (-5, 0, 0, 0), (10, 2**60, 100, 0)]
    for head in heads:
        with contextlib.suppress(LookupError), opened(transport) as comm:
            if RANK == 0:
                block = np.zeros(256, "u1")
                block[:32] = np.array(head, "i8").view("u1")
                fields = {"operation": lib.HBM_BCAST, "dtype": lib.HBM_UINT8, "count": 256}
                fields["reduction"] = lib.HBM_OBJECTS + lib.HBM_BCAST
                fields["send"] = fields["recv"] = block.ctypes.data
                assert lib.hbm_run(comm._core, ffi.new("hbm_call *", fields)) == lib.HBM_OK
            else:
                with refused(RuntimeError, "wrong lengths"):
                    comm.bcast(None, 0)
            raise LookupError


class FailsToLoad:
    def __reduce__(self) -> Any:
        return divmod, (1, 0)


@promise(*TRANSPORTS)
def no_call_keeps_memory_or_a_reference(transport: str) -> None:
    wrong, last = Unpicklable(), RANKS - 1
    things: list[Any] = [RANK, "x" * 5000, np.zeros(3), np.zeros(9000)]
    op = MPI.SUM
    with opened(transport) as comm:
        calls: list[Callable[[Any], Any]] = [
            lambda thing: comm.bcast(thing, last),
            lambda thing: comm.gather(thing),
            lambda thing: comm.scatter([thing] * RANKS),
            lambda thing: comm.allgather(thing),
            lambda thing: comm.alltoall([thing] * RANKS),
            lambda thing: comm.reduce([thing], op),
            lambda thing: comm.scan([thing], op),
            lambda thing: failed(lambda: comm.allgather(wrong if last == RANK else thing)),
            lambda thing: failed(lambda: comm.scatter([thing])),
        ]
        for number, call in enumerate(calls):
            for thing in things:
                watched = (comm, thing, op, None, wrong, MPI.pickle)
                counts = []
                for _ in range(4):
                    repeat(call, thing, comm)
                    refs = map(sys.getrefcount, watched)
                    counts.append(np.array([sys.getallocatedblocks(), *refs]))
                more = np.min(np.diff(counts, axis=0), axis=0)
                assert (more < TIMES // 2).all(), (number, more)


def repeat(call: Callable[[Any], Any], thing: Any, comm: Any) -> None:
    for _ in range(TIMES):
        call(thing)
    comm.barrier()


def failed(call: Callable[[], Any]) -> None:
    try:
        call()
    except (PeerError, ArithmeticError, ValueError):
        return
    assert RANKS == 1, "no error"


@promise(*TRANSPORTS)
def ranks_that_make_other_calls_hear_which(transport: str) -> None:
    with opened(transport) as comm, refused(CallMismatch, "of an object"):
        for _ in range(2):
            comm.allgather(1) if RANK == 0 else comm.allreduce(1)


if __name__ == "__main__":
    keep()
