"""Communicators derived from communicators, and which transport each of them gets.

Every call of mpi4py that derives an intracommunicator returns one of the same class, kind and
nodes. Where its ranks cannot use the transport of its parent, all of them try the next one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

from mpi4py import MPI

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory.arrays import ArrayFactory
from hbmcomm.options import TRANSPORTS, Options, gather_failures
from hbmcomm.transports.plans import Plan
from hbmcomm.transports.transport import Transport


class Derivable(Transport):
    """A communicator that passes its options to communicators derived from it."""

    _options: Options
    _public_class: type
    """Its class without a transport."""
    _topology: Any = None
    """mpi4py's class of its virtual topology, or None."""

    def _begin_first_possible(self) -> None:
        """Begin the first transport of the options that works on all ranks; collective.

        This changes the class of the object, because the caller of Idup refers to it already.

        Raises:
            Exception: The error of this rank; an HbmcommError with its text on the others.
        """
        names = self._options.transports
        for at, name in enumerate(names):
            before = dict(vars(self))
            self._options = self._options._replace(transports=names[at:])
            self.__class__ = _class_for(self._public_class, name, self._topology)
            problem: Exception | None = None
            try:
                self._begin()
            except Exception as error:
                problem = error
            failed = gather_failures(self, problem) if _begin_may_fail(self) else []
            if not failed:
                return
            if problem is None:
                self._abandon()
            vars(self).clear()
            vars(self).update(before)
            if name == names[-1] or not all(failure.recoverable for failure in failed):
                first = failed[0]
                raise problem or first.kind(f"rank {first.rank}: {first.text}")

    def _wrap(self, comm: MPI.Comm) -> Self:
        """A derived communicator in this one's class; collective over its ranks."""
        derived: Self = wrap(self._public_class, comm, self._options.of_derived)
        return derived

    def _wrap_undecided(self, comm: Self) -> Self:
        """A communicator that MPI still creates: its ranks must not wait for each other yet.

        MPI writes the handle to this object later, so that it cannot be replaced.
        """
        comm._options = self._options.of_derived
        if len(comm._options.transports) > 1 or _begin_may_fail(comm):
            comm.__class__ = _class_for(self._public_class, "", self._topology)
        return comm

    def Clone(self) -> Self:
        return self._wrap(super().Clone())

    def Dup(self, info: MPI.Info | None = None) -> Self:
        return self._wrap(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:
        return self._wrap(super().Dup_with_info(info))

    def Idup(self, info: MPI.Info | None = None) -> tuple[Self, MPI.Request]:
        comm, request = super().Idup(info)
        return self._wrap_undecided(comm), request

    def Idup_with_info(self, info: MPI.Info) -> tuple[Self, MPI.Request]:
        comm, request = super().Idup_with_info(info)
        return self._wrap_undecided(comm), request

    def Split(self, color: int = 0, key: int = 0) -> Self:
        return self._wrap(super().Split(color, key))

    def Split_type(self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL) -> Self:
        return self._wrap(super().Split_type(split_type, key, info))

    def Create(self, group: MPI.Group) -> Self:
        return self._wrap(super().Create(group))

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:
        return self._wrap(super().Create_group(group, tag))

    def Shrink(self) -> Self:
        return self._wrap(super().Shrink())

    def Revoke(self) -> None:
        """Revoke the communicator: collectives of this rank raise MPI's error from here on.

        Ranks that wait for this one in a collective of transport direct get PeerError.
        """
        super().Revoke()
        self._abandon()
        self.__class__ = _class_for(self._public_class, "mpi", self._topology)


class Grid(MPI.Cartcomm):
    """Wraps the results of Sub, which only Cartesian topologies have."""

    def Sub(self, remain_dims: Sequence[bool]) -> MPI.Cartcomm:
        own: Any = self
        part: MPI.Cartcomm = own._wrap(super().Sub(remain_dims))
        return part


class Undecided(Transport):
    """A communicator without a transport; the first call that may block selects one.

    Idup returns such a communicator: it must not wait for other ranks, and all of them make that
    first call. Nonblocking calls are MPI's until then.
    """

    def _array_factory(self) -> ArrayFactory:
        if self.device is not None:
            raise KindUnavailable(
                f"device={self.device}: a result of Idup has its part of the device from its "
                "first blocking collective until it is freed; make such a call first"
            )
        return super()._array_factory()

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        if self == MPI.COMM_NULL:
            return super()._plan(name, info, *arguments)
        own: Any = self
        own._begin_first_possible()
        plan: Plan = own._plan(name, info, *arguments)
        return plan


def wrap(public_class: type, comm: MPI.Comm, options: Options) -> Any:
    """An object of a user's class for this MPI communicator; collective over its ranks.

    Raises:
        Exception: As `Derivable._begin_first_possible`; the MPI communicator is freed.
    """
    # not Cartcomm.__new__, which Python refuses where Cartcomm is not the first base
    wrapped: Any = MPI.Intracomm.__new__(_class_for(public_class, "", _topology_of(comm)), comm)
    wrapped._options = options
    if wrapped != MPI.COMM_NULL:
        try:
            wrapped._begin_first_possible()
        except Exception:
            MPI.Comm.Free(wrapped)
            raise
    return wrapped


def unwrapped(comm: MPI.Comm) -> MPI.Intracomm:
    """An object of mpi4py's own class for the same MPI communicator."""
    own: type[MPI.Intracomm] = _topology_of(comm) or MPI.Intracomm
    return own(comm)


def _topology_of(comm: MPI.Comm) -> Any:
    return next((topology for topology in _TOPOLOGIES if isinstance(comm, topology)), None)


def _begin_may_fail(comm: Transport) -> bool:
    """Whether its transport has a `_begin`, which may fail; the same on all ranks."""
    return type(comm)._begin is not Transport._begin


@functools.cache
def _class_for(public_class: type, transport: str, topology: type | None) -> Any:
    """A subclass of `public_class` with the calls of a transport and of a topology."""
    bases: list[type] = [public_class, TRANSPORTS.get(transport, Undecided)]
    bases += [_TOPOLOGIES[topology]] if topology else []
    own: dict[str, Any] = {
        "__module__": public_class.__module__,
        "__qualname__": public_class.__qualname__,
        "__doc__": public_class.__doc__,
    }
    return type(
        public_class.__name__,
        tuple(bases),
        own | {"_public_class": public_class, "_topology": topology},
    )


_TOPOLOGIES: dict[type, type] = {
    MPI.Cartcomm: Grid,
    MPI.Graphcomm: MPI.Graphcomm,
    MPI.Distgraphcomm: MPI.Distgraphcomm,
}


def _selecting(name: str) -> Callable[..., Any]:
    original = getattr(MPI.Intracomm, name)

    @functools.wraps(original)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if self == MPI.COMM_NULL:
            return original(self, *arguments, **named)
        self._begin_first_possible()
        return getattr(self, name)(*arguments, **named)

    return call


def _may_block() -> set[str]:
    """The collectives that some transport overrides, without the nonblocking ones."""
    classes = {base for transport in TRANSPORTS.values() for base in transport.__mro__}
    own = {name for cls in classes - set(Transport.__mro__) for name in vars(cls)}
    return {name for name in own & set(dir(MPI.Intracomm)) if not re.match("_|I[a-z]", name)}


for _name in _may_block() - {"Free", "Disconnect"}:
    setattr(Undecided, _name, _selecting(_name))
