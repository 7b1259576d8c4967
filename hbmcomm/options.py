"""The options of a communicator: its kind, nodes, device, and the transports to try.

Checks the arguments before anything is created, and makes errors the same on all ranks.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from mpi4py import MPI

from hbmcomm.errors import ArenaUnavailable, HbmcommError, OutOfMemory
from hbmcomm.hierarchical.transport import Hierarchical
from hbmcomm.memory.kinds import Nodes, default_kind, node_numbers, resolve
from hbmcomm.transports.direct import Direct
from hbmcomm.transports.pickled import Pickles
from hbmcomm.transports.transport import Buffers, Transport

T = TypeVar("T")

TRANSPORTS: dict[str, type[Transport]] = {
    "direct": Direct,
    "hierarchical": Hierarchical,
    "mpi": Buffers,
    "pickle": Pickles,
}

AUTO = ("direct", "hierarchical", "mpi")
"""The transports that "auto" tries, in order, until one works on all ranks."""


class Options(NamedTuple):
    """The options of a communicator, and of all derived from it."""

    kind: str
    nodes: Nodes | None
    device: str | None
    transports: tuple[str, ...]
    """The one in use, then those that a derived communicator may use instead."""

    @property
    def transport(self) -> str:
        return self.transports[0]

    @property
    def of_derived(self) -> Options:
        """Options of a derived communicator: its ranks may all be on one host, and take direct."""
        if self.transports[0] == "hierarchical" and len(self.transports) > 1:
            return self._replace(transports=AUTO)
        return self


def check_wrappable(comm: object) -> None:
    """Check that a Communicator can wrap this.

    Raises:
        ValueError: COMM_NULL.
        TypeError: Not an intracommunicator.
    """
    if comm is MPI.COMM_NULL or (isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL):
        raise ValueError("Communicator cannot wrap MPI.COMM_NULL; leave this rank out")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"Communicator wraps an intracommunicator; found {type(comm).__name__}")


def options_of(
    kind: str | None,
    transport: str,
    nodes: Iterable[int] | None,
    device: str | os.PathLike[str] | None,
) -> Options:
    """The options that the arguments of a Communicator mean, once the kind is available.

    Raises:
        KindUnavailable: It is not.
        TypeError: An argument has the wrong type.
        ValueError: Unknown names, or arguments that cannot be combined.
    """
    names = AUTO if transport == "auto" else (transport,)
    if not all(name in list(TRANSPORTS) for name in names):
        known = ", ".join(["auto", *TRANSPORTS])
        raise ValueError(f"unknown transport {transport!r}; known: {known}")
    bound = None if nodes is None else node_numbers(nodes)
    if device is not None:
        file = os.fspath(device)
        _check_device(file, kind, names, bound)
        return Options("dax", bound, file, ("direct",))
    resolved = resolve(default_kind() if kind is None else kind, bound)
    return Options(resolved.name, bound, None, names)


def _check_device(
    device: str, kind: str | None, transports: tuple[str, ...], nodes: Nodes | None
) -> None:
    """Check that the other arguments can be combined with a device."""
    asked = f"device={device!r}"
    if kind not in (None, "dax"):
        raise ValueError(
            f"{asked} and kind={kind!r}: memory of a device is kind 'dax'; leave one out"
        )
    if nodes is not None:
        raise ValueError(f"{asked} and nodes={nodes}: a device has a fixed node; leave one out")
    if "direct" not in transports:
        raise ValueError(
            f"{asked} and transport={transports[0]!r}: only transport direct works on a device; "
            "take direct or auto"
        )


def run_on_all(comm: MPI.Comm, act: Callable[[], T]) -> T:
    """The result of `act` on this rank, once it has succeeded on every rank; collective.

    Raises:
        HbmcommError, TypeError, ValueError: On every rank, that of the lowest rank that failed.
    """
    problem: Exception | None = None
    result: Any = None
    try:
        result = act()
    except (HbmcommError, TypeError, ValueError) as error:
        problem = error
    except Exception as error:  # such as a file of sysfs that cannot be read
        problem = HbmcommError(_described(error))
        problem.__cause__ = error
    for rank, failure in enumerate(comm.allgather(problem)):
        if failure is not None:
            raise type(failure)(f"rank {rank}: {failure}") from problem
    value: T = result
    return value


class BeginFailure(NamedTuple):
    """Why a rank could not begin a transport."""

    rank: int
    kind: type[HbmcommError]
    text: str
    recoverable: bool
    """Ranks cannot share memory, or have none left: another transport may work."""


def gather_failures(comm: MPI.Comm, problem: Exception | None) -> list[BeginFailure]:
    """The failures of all ranks, by rank; collective, and the same list everywhere."""
    own = None
    if isinstance(problem, HbmcommError):
        recoverable = isinstance(problem, ArenaUnavailable | OutOfMemory)
        own = BeginFailure(comm.rank, type(problem), str(problem), recoverable)
    elif problem is not None:
        recoverable = isinstance(problem, MemoryError) or (
            isinstance(problem, OSError) and problem.errno == errno.ENOMEM
        )
        own = BeginFailure(comm.rank, HbmcommError, _described(problem), recoverable)
    return [failure for failure in MPI.Comm.allgather(comm, own) if failure is not None]


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
