"""The face of the library: an mpi4py communicator whose arrays live in a kind of memory.

Knows which transport serves which name; how one moves data is its own file's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, cast

import numpy as np
from mpi4py import MPI
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.collectives.pickled import Pickled
from hbmcomm.errors import HbmcommError
from hbmcomm.memory import arrays
from hbmcomm.memory.kinds import default_kind, resolve

Shape = int | Iterable[int]


class Communicator(MPI.Intracomm):
    """A drop-in for an mpi4py communicator, with collectives over a chosen transport.

    Wraps a duplicate of `comm`, so that its traffic never meets the caller's. Constructing one is
    a collective call; so is leaving it as a context manager, which frees the duplicate.

    Args:
        comm: Any intracommunicator, e.g. MPI.COMM_WORLD.
        kind: Where its arrays live, a name of `hbmcomm.KINDS`; left out: `hbmcomm.default_kind()`.
        transport: "mpi" (mpi4py's buffer calls), "pickle" (mpi4py's lower-case calls), or "auto".
        nodes: Bind arrays strictly to these NUMA nodes of the kind.

    Raises:
        KindUnavailable: On every rank, when any of them has no such memory.
        ValueError: Unknown kind or transport.
        TypeError: `comm` is not an intracommunicator.

    Attributes:
        kind: The name of the kind.
        nodes: As given.
        transport: The name of the transport that serves.
    """

    kind: str = "regular"
    nodes: tuple[int, ...] | None = None
    transport: str = "mpi"

    # mpi4py makes derived communicators (Dup, Split, ...) by a bare __new__(cls), hence defaults.
    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
    ) -> Self:
        if comm is None:
            return super().__new__(cls)
        _check(comm)
        made = super().__new__(_serving(transport), MPI.Intracomm.Dup(comm))
        made.nodes = None if nodes is None else tuple(nodes)
        made.kind = _agree(made, kind, made.nodes)
        return cast("Self", made)

    def __init__(
        self,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
    ) -> None:
        if comm is None:
            raise TypeError("Communicator needs a communicator to wrap, such as MPI.COMM_WORLD")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self != MPI.COMM_NULL:  # other ranks may not know of an error here
            self.Free()

    def empty(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of arbitrary contents in this communicator's kind; see `hbmcomm.empty`."""
        return arrays.empty(shape, dtype, self.kind, self.nodes)

    def zeros(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of zeros in this communicator's kind."""
        return arrays.zeros(shape, dtype, self.kind, self.nodes)

    def full(self, shape: Shape, fill: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of one value in this communicator's kind."""
        return arrays.full(shape, fill, dtype, self.kind, self.nodes)

    def empty_like(self, a: ArrayLike) -> NDArray[Any]:
        """An array of arbitrary contents with the shape and dtype of another."""
        like = np.asanyarray(a)
        return self.empty(like.shape, like.dtype)

    def asarray(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The values of `a` in this communicator's kind; copied unless they are there already."""
        return arrays.asarray(a, dtype, self.kind, self.nodes)

    def _heir(self, made: MPI.Comm) -> Self:
        """A communicator that mpi4py derived from this one, with its transport, kind and nodes."""
        heir = super().__new__(type(self), made)
        heir.kind, heir.nodes = self.kind, self.nodes
        return heir

    def Dup(self, info: MPI.Info | None = None) -> Self:
        return self._heir(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:
        return self._heir(super().Dup_with_info(info))

    def Clone(self) -> Self:
        return self._heir(super().Clone())

    def Split(self, color: int = 0, key: int = 0) -> Self:
        return self._heir(super().Split(color, key))

    def Split_type(self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL) -> Self:
        return self._heir(super().Split_type(split_type, key, info))

    def Create(self, group: MPI.Group) -> Self:
        return self._heir(super().Create(group))

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:
        return self._heir(super().Create_group(group, tag))


def _check(comm: object) -> None:
    if comm == MPI.COMM_NULL:
        raise ValueError("Communicator cannot wrap MPI.COMM_NULL; leave this rank out")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"Communicator wraps an intracommunicator; found {type(comm).__name__}")


def _serving(transport: str) -> type[Communicator]:
    name = AUTO if transport == "auto" else transport
    if name not in TRANSPORTS:
        known = ", ".join(["auto", *TRANSPORTS])
        raise ValueError(f"unknown transport {transport!r}; known: {known}")
    return TRANSPORTS[name]


def _agree(comm: MPI.Intracomm, kind: str | None, nodes: tuple[int, ...] | None) -> str:
    """The kind's name, once every rank can have it.

    Raises:
        KindUnavailable, ValueError: On every rank, with the words of the first that cannot.
    """
    problem: Exception | None = None
    try:
        name = kind or default_kind()
        resolve(name, nodes)
    except (HbmcommError, ValueError) as error:
        problem = error
    problems = [(rank, each) for rank, each in enumerate(comm.allgather(problem)) if each]
    if problems:
        rank, first = problems[0]
        comm.Free()
        raise type(first)(f"rank {rank}: {first}")
    return name


class PickleCommunicator(Pickled, Communicator):
    """A Communicator whose collectives are mpi4py's lower-case calls."""

    transport = "pickle"


TRANSPORTS: dict[str, type[Communicator]] = {"mpi": Communicator, "pickle": PickleCommunicator}
"""The class that serves each transport; `direct`, over shared memory, will join them."""

AUTO = "mpi"
