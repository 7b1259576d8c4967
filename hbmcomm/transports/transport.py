"""The base of every transport: MPI's calls, a beginning, an end, and a factory of arrays."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any, Generic, NamedTuple, Never, TypeVar, overload

from mpi4py import MPI

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory import arrays
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.kinds import Kind, Nodes, resolve
from hbmcomm.memory.numpy_memory import numpy_memory
from hbmcomm.transports import mpi_errors
from hbmcomm.transports.native import Core
from hbmcomm.transports.persistent import Persistent

Value_co = TypeVar("Value_co", covariant=True)


class ReadOnly(Generic[Value_co]):
    """A read-only attribute: the field of that name of the communicator's options."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, comm: None, owner: type) -> ReadOnly[Value_co]: ...
    @overload
    def __get__(self, comm: object, owner: type) -> Value_co: ...
    def __get__(self, comm: Any, owner: type) -> Any:
        return self if comm is None else getattr(comm._options, self._name)

    def __set__(self, comm: object, value: Never) -> None:
        raise AttributeError(
            f"{self._name} of a communicator is read-only; create another: "
            f"Communicator(comm, {self._name}=...)"
        )


class Neighbours(NamedTuple):
    """The ranks that share memory with this one, itself included, and through what."""

    ranks: tuple[int, ...]
    """Of the communicator; core and arena number them in this order."""
    core: Core
    arena: Arena


class Transport(Persistent):
    """Transports override the calls that they do themselves; all others stay mpi4py's."""

    def __init_subclass__(cls) -> None:
        """Calls that a transport does itself have the documentation of mpi4py's."""
        super().__init_subclass__()
        for name, call in vars(cls).items():
            if isinstance(call, FunctionType) and call.__doc__ is None and name[0] != "_":
                call.__doc__ = getattr(getattr(MPI.Intracomm, name, None), "__doc__", None)

    kind: ReadOnly[str]
    """The kind of the arrays of this communicator."""
    nodes: ReadOnly[Nodes | None]
    """The NUMA nodes that they are bound to; None: those of the kind."""
    device: ReadOnly[str | None]
    """The device-dax file that they are on; None: memory of the kind."""
    transport: ReadOnly[str]
    """The name of this transport."""

    def _reported(self, error: BaseException) -> BaseException:
        """An error of a call, to raise once the communicator's error handler has seen it."""
        return mpi_errors.reported(self, error)

    def _begin(self) -> None:
        """Get ready once kind and nodes are set; collective."""

    def _abandon(self) -> None:
        """Leave without the other ranks, which may wait for this one: an error ended its part."""

    def _neighbours(self) -> Neighbours | None:
        """The ranks that share memory with this one; None: this transport lets none do so."""
        return None

    def _array_factory(self) -> arrays.ArrayFactory:
        return arrays.private_factory(self.kind, self.nodes)

    def _numpy_memory(self) -> AbstractContextManager[Kind]:
        if self.nodes is not None:
            raise KindUnavailable(
                f"numpy_memory with nodes={self.nodes} needs transport direct; leave nodes out"
            )
        if self.kind == "regular":  # NumPy's arrays are there in any case
            return nullcontext(resolve(self.kind))
        return numpy_memory(self.kind)


class Buffers(Transport):
    """Overrides nothing: the MPI library moves the data, with no Python before it."""
