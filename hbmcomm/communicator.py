"""The face of the library: an mpi4py communicator whose arrays live in a kind of memory.

Knows its kind and its transport; how a transport moves data is that file's own affair.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.collectives import AUTO, TRANSPORTS
from hbmcomm.collectives.transport import Transport
from hbmcomm.errors import ArenaUnavailable, HbmcommError
from hbmcomm.memory.arrays import Shape
from hbmcomm.memory.kinds import Nodes, default_kind, resolve

T = TypeVar("T")


class Communicator(Transport):
    """A drop-in for an mpi4py communicator, with arrays in a kind and a choice of transport.

    Wraps a duplicate of `comm`, so that its traffic never meets the caller's. Making one is
    collective; so are Free and the end of a `with` block, which free the duplicate alone.
    Communicators derived from it (Dup, Split, Create ...) keep class, kind and transport.

    With transport direct, ranks that call different collectives at the same point all get
    CallMismatch, and those that count on a rank that died or left get PeerError, here or at the
    next call; the communicator is of no use then. It serves one thread at a time and no child of a
    fork; its arrays are shared with such a child, not copied. The `*_init` calls return a `Plan`.

    Args:
        comm: Any intracommunicator, e.g. MPI.COMM_WORLD.
        kind: Where its arrays live, a name of `hbmcomm.KINDS`; left out: `hbmcomm.default_kind()`.
        transport: "direct" (our own, over memory that all ranks share), "mpi" (mpi4py's buffer
            calls), "pickle" (its lower-case calls), or "auto": direct where the ranks can share
            memory, else mpi.
        nodes: Bind arrays strictly to these NUMA nodes of the kind.
        device: A device-dax file such as "/dev/dax0.0": arrays, and all that collectives keep, live
            on it. The kind is then "dax", the transport direct. The first communicator of a job
            takes the whole device, in equal parts for its ranks; what is derived from it shares
            that, and the last of them, with the last array, gives it back. No two jobs have it
            at a time (see `hbmcomm.memory.claim` for who is not seen), and what earlier ones left
            there is zero before anyone gets it.

    Raises:
        KindUnavailable: On every rank, when any of them has no such memory, may not use the device,
            or another job has it.
        OutOfMemory: On every rank, when any of them has none left for its part of the arena.
            Later, `empty` asks for the calling rank alone: who lacks the memory gets OutOfMemory
            there and then, the others are not told.
        ArenaUnavailable: On every rank: transport direct, and two ranks cannot share memory.
        ValueError: On every rank: unknown kind or transport, or one that a device cannot serve;
            on one alone: COMM_NULL.
        TypeError: `comm` is not an intracommunicator.
    """

    transport: str
    """What moves its data, by name."""

    # mpi4py makes duplicates by a bare __new__(cls), hence the defaults here and in __init__.
    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
        device: str | os.PathLike[str] | None = None,
    ) -> Self:
        if comm is None:
            return super().__new__(cls)
        _check(comm)
        bound = None if nodes is None else tuple(nodes)
        file = None if device is None else os.fspath(device)
        duplicate = MPI.Comm.Dup(comm)
        face: type = getattr(cls, "_face", cls)
        try:
            place, candidates = _agree(duplicate, lambda: _choose(kind, transport, bound, file))
            for name in candidates:
                made: Self = super().__new__(_serving(face, name), duplicate)
                made.kind, made.nodes, made.device = place, bound, file
                try:
                    made._begin()
                except ArenaUnavailable:
                    if name == candidates[-1]:
                        raise
                else:
                    break
        except (HbmcommError, ValueError):
            MPI.Comm.Free(duplicate)
            raise
        return made

    def __init__(
        self,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
        device: str | os.PathLike[str] | None = None,
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
        if error is not None:  # other ranks may not know of it, so that Free would wait for them
            self._abandon()
        elif self != MPI.COMM_NULL:
            self.Free()

    def empty(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of arbitrary contents in this communicator's kind; see `hbmcomm.empty`."""
        return self._supply().empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of zeros in this communicator's kind."""
        return self._supply().zeros(shape, dtype)

    def full(self, shape: Shape, fill: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of one value in this communicator's kind."""
        return self._supply().full(shape, fill, dtype)

    def empty_like(self, a: ArrayLike) -> NDArray[Any]:
        """An array of arbitrary contents with the shape and dtype of another."""
        like = np.asanyarray(a)
        return self.empty(like.shape, like.dtype)

    def asarray(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The values of `a` in this communicator's kind; copied unless they are there already."""
        return self._supply().asarray(a, dtype)

    def Clone(self) -> Self:
        return self._heir(super().Clone())

    def Dup(self, info: MPI.Info | None = None) -> Self:
        return self._heir(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:
        return self._heir(super().Dup_with_info(info))

    def Idup(self, info: MPI.Info | None = None) -> tuple[Self, MPI.Request]:
        made, request = super().Idup(info)
        return self._heir(made, ready=False), request

    def Idup_with_info(self, info: MPI.Info) -> tuple[Self, MPI.Request]:
        made, request = super().Idup_with_info(info)
        return self._heir(made, ready=False), request

    def Split(self, color: int = 0, key: int = 0) -> Self:
        return self._heir(super().Split(color, key))

    def Split_type(self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL) -> Self:
        return self._heir(super().Split_type(split_type, key, info))

    def Create(self, group: MPI.Group) -> Self:
        return self._heir(super().Create(group))

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:
        return self._heir(super().Create_group(group, tag))

    def _heir(self, made: MPI.Comm, ready: bool = True) -> Self:
        """A derived communicator as one of ours: some calls make it so, some a plain Intracomm.

        Args:
            ready: Its ranks may talk now; else the transport begins at the first call.
        """
        heir = made if isinstance(made, type(self)) else super().__new__(type(self), made)
        heir.kind, heir.nodes, heir.device = self.kind, self.nodes, self.device
        if ready and heir != MPI.COMM_NULL:
            heir._begin()
        return heir


def _check(comm: object) -> None:
    if comm is MPI.COMM_NULL or (isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL):
        raise ValueError("Communicator cannot wrap MPI.COMM_NULL; leave this rank out")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"Communicator wraps an intracommunicator; found {type(comm).__name__}")


def _choose(
    kind: str | None, transport: str, nodes: Nodes | None, device: str | None
) -> tuple[str, tuple[str, ...]]:
    """The name of the kind that is meant, once it can be had, and the transports to try."""
    names = AUTO if transport == "auto" else (transport,)
    if not set(names) <= set(TRANSPORTS):
        known = ", ".join(["auto", *TRANSPORTS])
        raise ValueError(f"unknown transport {transport!r}; known: {known}")
    if device is not None:
        _check_device(device, kind, names, nodes)
        return "dax", ("direct",)
    return resolve(kind or default_kind(), nodes).name, names


def _check_device(
    device: str, kind: str | None, transports: tuple[str, ...], nodes: Nodes | None
) -> None:
    """Whether what else is asked for goes with a device."""
    asked = f"device={device!r}"
    if kind not in (None, "dax"):
        raise ValueError(
            f"{asked} and kind={kind!r}: memory of a device is kind 'dax'; leave one out"
        )
    if nodes is not None:
        raise ValueError(f"{asked} and nodes={nodes}: a device is where it is; leave one out")
    if "direct" not in transports:
        raise ValueError(
            f"{asked} and transport={transports[0]!r}: only transport direct works on a device; "
            "take direct or auto"
        )


def _agree(comm: MPI.Comm, choose: Callable[[], T]) -> T:
    """What this rank chooses, once every rank can choose.

    Raises:
        HbmcommError, ValueError: On every rank alike, of the first rank that cannot.
    """
    problem: Exception | None = None
    chosen: Any = None
    try:
        chosen = choose()
    except (HbmcommError, ValueError) as error:
        problem = error
    for rank, each in enumerate(comm.allgather(problem)):
        if each is not None:
            raise type(each)(f"rank {rank}: {each}")
    found: T = chosen
    return found


@functools.cache
def _serving(face: type, transport: str) -> Any:
    """The class `face` with a transport's calls put between it and mpi4py's."""
    own = {"__module__": face.__module__, "__doc__": face.__doc__}
    named = {"transport": transport, "_face": face}
    return type(face.__name__, (face, TRANSPORTS[transport]), own | named)
