"""Rank program: objects with `__dlpack__` and no buffer protocol work as with mpi4py."""

import ctypes
import gc
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.transports.message import Unreadable, read
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size

SUMMABLE = "bhilBHILfdFD"


class Tensor:
    """An array behind the one interface; with `copies` each capsule owns memory of its own."""

    def __init__(self, array: np.ndarray, *, copies: bool = False, device: int = 1) -> None:
        self.array, self.copies, self.device = array, copies, device

    def __dlpack__(self, **asked: Any) -> object:
        array = self.array.copy() if self.copies else self.array
        return array.__dlpack__(**asked | {"copy": None})

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class OldTensor(Tensor):
    """One from before DLPack 1.0, which knows no versions."""

    def __dlpack__(self, stream: None = None) -> object:
        return self.array.__dlpack__()


def summed(comm: MPI.Comm, kind: type[Tensor], dtype: str) -> np.ndarray:
    x, y = np.arange(5).astype(dtype) + dtype_of(dtype)(RANK), np.zeros(5, dtype)
    comm.Allreduce(kind(x), kind(y))
    return y


def dtype_of(dtype: str) -> Any:
    return np.dtype(dtype).type


@promise("direct", "mpi", "pickle")
def elements_keep_their_type(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    for kind in (Tensor, OldTensor):
        for dtype in SUMMABLE:
            wanted = np.arange(5) * RANKS + sum(range(RANKS))
            assert summed(WORLD, kind, dtype).tolist() == wanted.tolist(), dtype
            assert summed(comm, kind, dtype).tolist() == wanted.tolist(), dtype


@promise("direct", "mpi", "pickle")
def a_bool_is_no_number(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    x, y = np.array([True, RANK == 0]), np.zeros(2, "?")
    comm.Allreduce(Tensor(x), Tensor(y), MPI.LAND)
    assert y.tolist() == [True, RANKS == 1]


@promise("direct", "mpi", "pickle")
def counts_and_types_may_be_given(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    x, y = np.arange(6.0) + RANK, np.zeros((RANKS, 2))
    comm.Allgather([Tensor(x), (2, 1), MPI.DOUBLE], Tensor(y))
    assert y.tolist() == [[1.0 + rank, 2.0 + rank] for rank in range(RANKS)]


@promise("direct", "mpi", "pickle")
def what_mpi4py_refuses_is_refused(transport: str) -> None:
    comm = Communicator(WORLD, transport=transport)
    locked = np.zeros(3)
    locked.flags.writeable = False
    for spec in (Tensor(np.zeros((4, 4))[:, 1]), Tensor(locked)):
        for intracomm in (WORLD, comm):
            with refused(BufferError):
                intracomm.Allreduce(np.zeros(3), spec)


@promise
def memory_of_a_capsule_is_kept() -> None:
    given = Tensor(np.arange(100_000), copies=True)
    message = read(given)
    given.array[:] = -1
    del given
    gc.collect()
    other = [np.full(100_000, 7) for _ in range(20)]  # where freed memory would be reused
    assert (message.load().view("l") == np.arange(100_000)).all()
    del other


@promise
def memory_of_an_accelerator_is_left_to_mpi() -> None:
    with refused(Unreadable):
        read(Tensor(np.zeros(3), device=2))


@promise
def prototypes_of_pythons_functions_are_left_to_other_packages() -> None:
    for name in ("PyCapsule_GetName", "PyCapsule_GetPointer"):
        assert getattr(ctypes.pythonapi, name).argtypes is None


if __name__ == "__main__":
    keep()
