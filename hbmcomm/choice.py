"""What a communicator is asked for: its kind, nodes, device, and the transports to try.

Judges the arguments before anything is made, and finds one answer for all ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from mpi4py import MPI

from hbmcomm.collectives.transports import AUTO, TRANSPORTS
from hbmcomm.errors import HbmcommError, KindUnavailable
from hbmcomm.memory.policy.kinds import Nodes, default_kind, resolve

T = TypeVar("T")


class Choice(NamedTuple):
    """What a communicator has, and all derived from it."""

    kind: str
    nodes: Nodes | None
    device: str | None
    transports: tuple[str, ...]
    """The one that it has, then those that a derived communicator may take in its place."""

    @property
    def transport(self) -> str:
        return self.transports[0]


def check(comm: object) -> None:
    """Whether this can be wrapped.

    Raises:
        ValueError: COMM_NULL.
        TypeError: Not an intracommunicator.
    """
    if comm is MPI.COMM_NULL or (isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL):
        raise ValueError("Communicator cannot wrap MPI.COMM_NULL; leave this rank out")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"Communicator wraps an intracommunicator; found {type(comm).__name__}")


def choose(
    kind: str | None,
    transport: str,
    nodes: Iterable[int] | None,
    device: str | os.PathLike[str] | None,
) -> Choice:
    """What is meant by the arguments of `Communicator`, once the kind can be had.

    Raises:
        KindUnavailable: It cannot.
        TypeError: An argument has the wrong type.
        ValueError: Unknown names, or arguments that do not go together.
    """
    names = AUTO if transport == "auto" else (transport,)
    if not all(name in list(TRANSPORTS) for name in names):
        known = ", ".join(["auto", *TRANSPORTS])
        raise ValueError(f"unknown transport {transport!r}; known: {known}")
    bound = None if nodes is None else _bound(nodes)
    if device is not None:
        file = os.fspath(device)
        _check_device(file, kind, names, bound)
        return Choice("dax", bound, file, ("direct",))
    return Choice(resolve(kind or default_kind(), bound).name, bound, None, names)


def _bound(nodes: Iterable[int]) -> Nodes:
    try:
        return tuple(nodes)
    except TypeError:
        raise TypeError(
            f"nodes={nodes!r}: not a list of NUMA nodes; give one such as [0]"
        ) from None


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


def agree(comm: MPI.Comm, choose: Callable[[], T]) -> T:
    """What this rank chooses, once every rank can choose.

    Raises:
        HbmcommError, TypeError, ValueError: On every rank alike, of the first rank that cannot.
    """
    problem: Exception | None = None
    chosen: Any = None
    try:
        chosen = choose()
    except (HbmcommError, TypeError, ValueError) as error:
        problem = error
    except Exception as error:  # such as a file of sysfs that cannot be read
        problem = HbmcommError(_described(error))
        problem.__cause__ = error
    for rank, each in enumerate(comm.allgather(problem)):
        if each is not None:
            raise type(each)(f"rank {rank}: {each}") from problem
    found: T = chosen
    return found


class Failure(NamedTuple):
    """Why a rank could not begin a transport."""

    rank: int
    kind: type[HbmcommError]
    text: str
    passable: bool
    """The next transport may do without what is missing."""


def failures(comm: MPI.Comm, problem: Exception | None) -> list[Failure]:
    """Those of all ranks, by rank; collective, and the same list everywhere."""
    own = None
    if isinstance(problem, HbmcommError):
        lacking = not isinstance(problem, KindUnavailable)
        own = Failure(comm.rank, type(problem), str(problem), lacking)
    elif problem is not None:
        lacking = isinstance(problem, OSError | MemoryError)
        own = Failure(comm.rank, HbmcommError, _described(problem), lacking)
    return [each for each in MPI.Comm.allgather(comm, own) if each is not None]


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
