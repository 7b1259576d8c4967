"""Rank program: arrays that are not NumPy's give mpi4py's results, and no line of Python runs."""

import array
import mmap
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm import Communicator
from tests.hbmcomm.ranks.promising import keep, lines_of_python, promise

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
CODES = "bBhHiIlLqQfd"
TIMES = 200

direct = Communicator(WORLD, "regular", "direct")
own = Communicator(MPI.COMM_SELF, "regular", "direct")
Array = NDArray[Any]


def of_ctypes(values: Array) -> Any:
    return np.ctypeslib.as_ctypes_type(values.dtype) * values.size


def mapped(values: Array) -> mmap.mmap:
    memory = mmap.mmap(-1, max(values.nbytes, 1))
    memory[: values.nbytes] = values.tobytes()
    return memory


def on_disk(values: Array) -> Any:
    with tempfile.TemporaryFile() as file:
        memory = np.memmap(file, values.dtype, "w+", shape=values.shape)
    memory[...] = values
    return memory


MAKERS: dict[str, Callable[[Array], Any]] = {
    "array.array": lambda values: array.array(values.dtype.char, values.tobytes()),
    "memoryview": lambda values: memoryview(values.copy()),
    "of two dimensions": lambda values: memoryview(values.copy().reshape(2, -1)),
    "memory of MPI": lambda values: MPI.memory.frombuffer(values.copy()),
    "ctypes": lambda values: of_ctypes(values).from_buffer_copy(values),
    "bytearray": lambda values: bytearray(values.tobytes()),
    "mmap": mapped,
    "memmap": on_disk,
}
AS_BYTES = ("memory of MPI", "bytearray", "mmap")
"""They know no other elements."""


def bytes_of(buffer: Any) -> bytes:
    return bytes(buffer.numpy()) if hasattr(buffer, "numpy") else bytes(buffer)


def called(comm: Any, make: Callable[[Array], Any], values: Array) -> list[tuple[str, Any]]:
    """The result of each call, by its name."""

    def filled() -> Any:
        return make((values + RANK).astype(values.dtype))

    def empty(blocks: int = 1) -> Any:
        return make(np.zeros(blocks * values.size, values.dtype))

    one, every = filled(), make(np.tile(values, RANKS))  # mpi4py's requests do not keep them all
    calls: list[tuple[str, Any, Callable[[Any], object]]] = [
        ("Bcast", filled(), lambda into: comm.Bcast(into, root=1)),
        ("Allreduce", empty(), lambda into: comm.Allreduce(filled(), into)),
        ("Allreduce in place", filled(), lambda into: comm.Allreduce(MPI.IN_PLACE, into, MPI.MAX)),
        ("Reduce", empty(), lambda into: comm.Reduce(filled(), None if RANK else into)),
        ("Allgather", empty(RANKS), lambda into: comm.Allgather(filled(), into)),
        ("Alltoall", empty(RANKS), lambda into: comm.Alltoall(every, into)),
        ("Scan", empty(), lambda into: comm.Scan(filled(), into)),
        ("Scatter", empty(), lambda into: comm.Scatter(None if RANK else every, into)),
        ("Iallreduce", empty(), lambda into: comm.Iallreduce(one, into).Wait()),
        ("Igather", empty(RANKS), lambda into: comm.Igather(one, into).Wait()),
    ]
    for _, into, call in calls:
        call(into)
    return [(name, bytes_of(into)) for name, into, _ in calls]


@promise
def arrays_of_other_libraries_give_mpi4pys_results() -> None:
    for code in CODES:
        values = np.arange(1, 25).astype(code)
        for name, make in MAKERS.items():
            if code != "B" and name in AS_BYTES:
                continue
            assert called(direct, make, values) == called(WORLD, make, values), (code, name)


@promise
def arrays_of_other_libraries_run_no_python() -> None:
    values = np.arange(24.0)
    for name, make in MAKERS.items():
        values = values.astype("B" if name in AS_BYTES else "d")
        one, into = make(values), make(values)
        every, others = make(np.tile(values, RANKS)), make(np.tile(values, RANKS))
        calls: list[Callable[[], object]] = [
            lambda: direct.Bcast(into),  # noqa: B023
            lambda: direct.Allreduce(one, into),  # noqa: B023
            lambda: direct.Allgather(one, every),  # noqa: B023
            lambda: direct.Alltoall(every, others),  # noqa: B023
        ]
        for number, call in enumerate(calls):
            assert lines_of_python(call) == 0, (name, number)
    buffer = array.array("d", values)
    assert lines_of_python(lambda: direct.Bcast([buffer, MPI.DOUBLE])) == 0
    assert lines_of_python(lambda: direct.Allreduce(np.float64(1), np.zeros(1))) == 0


@promise
def what_the_core_cannot_read_gives_mpi4pys_result_or_error() -> None:
    """Each buffer is sent, and then received into."""
    some, ends_swapped = np.arange(6.0), np.arange(6, dtype=">i4")
    refused: list[tuple[str, Any, Any]] = [
        ("read-only", memoryview(some.tobytes()).cast("d"), some.copy()),
        ("with gaps", memoryview(np.arange(12.0))[::2], some.copy()),
        ("the other order of bytes", memoryview(ends_swapped), np.zeros(6, "i4")),
        ("released", released(), some.copy()),
        ("of another type", [array.array("d", some), MPI.FLOAT], np.zeros(6)),
        ("of characters", array.array("u", "abc"), np.zeros(3, "i4")),
        ("nothing", array.array("d"), np.zeros(0)),
        ("of odd bytes", memoryview(bytearray(49))[1:].cast("d"), some.copy()),
    ]
    for name, buffer, other in refused:
        for sent, received in ((buffer, other), (other, buffer)):
            ours, theirs = (outcome(comm, sent, received) for comm in (own, MPI.COMM_SELF))
            assert ours == theirs, (name, ours, theirs)


@promise
def a_rank_may_spell_its_buffer_as_only_mpi4py_reads_it() -> None:
    """Others are in the core: a rank that went to MPI would wait for ever."""
    dates = np.arange(3).astype("M8[s]") if RANK == 0 else np.zeros(3, "i8")
    direct.Bcast([dates, MPI.INT64_T])
    assert np.array_equal(dates.view("i8"), np.arange(3))
    into = np.zeros(2 * RANKS)
    for counts in (np.array(2), (np.array(2), np.array(2))):
        into[:] = 0
        direct.Gatherv(np.full(2, 1.0 + RANK), [into, counts] if RANK == 0 else None)
        assert RANK or into.tolist() == [1.0 + rank for rank in range(RANKS) for _ in "ab"]
    for root in (0.0, np.float64(0)):
        one = np.full(1, 5.0 - RANK)
        direct.Bcast(one, root)
        assert one[0] == 5.0


@promise
def in_place_is_no_buffer_where_mpi4py_takes_it_for_none() -> None:
    calls: list[Callable[[Any], object]] = [
        lambda comm: comm.Bcast(MPI.IN_PLACE),
        lambda comm: comm.Bcast(np.zeros(1), [np.array(0), MPI.LONG]),
        lambda comm: comm.Allreduce(MPI.IN_PLACE, MPI.IN_PLACE),
        lambda comm: comm.Allgather(MPI.IN_PLACE, MPI.IN_PLACE),
        lambda comm: comm.Alltoall(bytearray(), MPI.IN_PLACE),
    ]
    MPI.COMM_SELF.Set_errhandler(MPI.ERRORS_RETURN)
    for number, call in enumerate(calls):
        assert refuses(own, call) == refuses(MPI.COMM_SELF, call), number  # MPICH takes some


def refuses(comm: Any, call: Callable[[Any], object]) -> bool:
    try:
        call(comm)
    except (MPI.Exception, TypeError):
        return True
    return False


def released() -> memoryview:
    view = memoryview(bytearray(48)).cast("d")
    view.release()
    return view


def outcome(comm: Any, sent: Any, received: Any) -> Any:
    """What an Allgather of one rank leaves, or its error."""
    try:
        comm.Allgather(sent, received)
    except Exception as error:
        return type(error), str(error)
    return bytes(received[0] if isinstance(received, list) else received)


@promise
def an_array_is_held_while_its_operation_is_in_flight_and_no_longer() -> None:
    buffer, into = array.array("d", [1.0] * 1000), array.array("d", [0.0] * 1000)
    request: Any = direct.Iallreduce(buffer, into) if RANK else None
    WORLD.Barrier()
    if RANK:
        try:
            buffer.append(1.0)
        except BufferError:
            pass
        else:
            raise AssertionError("memory that others read could be moved")
    else:
        request = direct.Iallreduce(buffer, into)
    request.Wait()
    buffer.append(1.0)  # the request is still there, and needs it no more
    assert into[0] == RANKS
    before = [sys.getrefcount(held) for held in (buffer, into)]
    del buffer[1000:]
    for _ in range(TIMES):
        own.Allreduce(buffer, into)
    after = [sys.getrefcount(held) for held in (buffer, into)]
    assert after == before, (before, after)


def tensors(values: Array) -> Any:
    return torch.from_numpy(values.copy())


@promise
def tensors_of_torch_run_no_python_and_are_right() -> None:
    if torch is None:
        return
    for code in "bBhilfd?e":
        values = (np.arange(1, 25) % (2 if code == "?" else 30)).astype(code)
        one, into, every = tensors(values), tensors(values), tensors(np.tile(values, RANKS))
        assert lines_of_python(lambda: direct.Allgather(one, every)) == 0  # noqa: B023
        assert lines_of_python(lambda: direct.Bcast(into)) == 0  # noqa: B023
        if code not in "?e":
            assert lines_of_python(lambda: direct.Allreduce(one, into)) == 0  # noqa: B023
            assert called(direct, tensors, values) == called(WORLD, tensors, values), code
    part = torch.arange(100.0)[10:20]
    direct.Allreduce(part.clone(), part)
    assert part.tolist() == [RANKS * number for number in range(10, 20)]


@promise
def tensors_that_are_more_than_their_memory_are_never_sent_as_it() -> None:
    if torch is None:
        return
    awkward = {
        "with gradients": torch.ones(4, requires_grad=True),
        "conjugate": torch.full((4,), 1 + 2j).conj(),
        "negated": torch.tensor([1 + 2j] * 4).conj().imag,
        "a parameter": torch.nn.Parameter(torch.ones(4)),
        "transposed": torch.arange(4.0).reshape(2, 2).T,
        "sparse": torch.eye(2).to_sparse(),
        "bfloat16": torch.ones(4, dtype=torch.bfloat16),
        "on no device": torch.empty(4, device="meta"),
    }
    for name, tensor in awkward.items():
        into = np.zeros(4, "c8" if tensor.is_complex() else "f4")
        ours, theirs = (outcome(comm, tensor, into) for comm in (own, MPI.COMM_SELF))
        assert ours == theirs, (name, ours, theirs)


if __name__ == "__main__":
    keep()
