"""Communicators made from communicators, and which transport each of them gets.

Every call of mpi4py that derives an intracommunicator gives one of the same class, kind and nodes
here. Where its ranks cannot have the transport of its parent, they go to the next one together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

from mpi4py import MPI

from hbmcomm.choice import Choice, failures
from hbmcomm.collectives.calls.plan import Plan
from hbmcomm.collectives.transports import TRANSPORTS
from hbmcomm.collectives.transports.transport import Transport


class Derivable(Transport):
    """A communicator that hands on what it was asked for to those derived from it."""

    _choice: Choice
    _face: type
    """Its class without the transport's."""
    _topology: Any = None
    """mpi4py's class of its virtual topology, or None."""

    def _settle(self) -> None:
        """Begin with the first transport of the choice that all ranks can have; collective.

        The object changes its class on the way, because the caller of Idup holds it already.

        Raises:
            Exception: What went wrong on this rank; on the others an HbmcommError that says so.
        """
        names = self._choice.transports
        for at, name in enumerate(names):
            before = dict(vars(self))
            self._choice = self._choice._replace(transports=names[at:])
            self.__class__ = _serving(self._face, name, self._topology)
            problem = self._attempt()
            failed = failures(self, problem) if _exchanges(self) else []
            if not failed:
                return
            if problem is None:
                self._abandon()
            vars(self).clear()
            vars(self).update(before)
            if name == names[-1] or not all(each.passable for each in failed):
                first = failed[0]
                raise problem or first.kind(f"rank {first.rank}: {first.text}")

    def _attempt(self) -> Exception | None:
        try:
            self._begin()
        except Exception as error:
            return error
        return None

    def _adopt(self, made: MPI.Comm) -> Self:
        """A derived communicator as one of ours; its ranks are here together."""
        derived: Self = one_of_ours(self._face, made, self._choice)
        return derived

    def _later(self, made: Self) -> Self:
        """One that MPI still makes: its ranks must not wait for each other yet.

        It is the object that MPI writes the handle to, so that there can be no other.
        """
        made._choice = self._choice
        if len(self._choice.transports) > 1:
            made.__class__ = _serving(self._face, "", self._topology)
        return made

    def Clone(self) -> Self:
        return self._adopt(super().Clone())

    def Dup(self, info: MPI.Info | None = None) -> Self:
        return self._adopt(super().Dup(info))

    def Dup_with_info(self, info: MPI.Info) -> Self:
        return self._adopt(super().Dup_with_info(info))

    def Idup(self, info: MPI.Info | None = None) -> tuple[Self, MPI.Request]:
        made, request = super().Idup(info)
        return self._later(made), request

    def Idup_with_info(self, info: MPI.Info) -> tuple[Self, MPI.Request]:
        made, request = super().Idup_with_info(info)
        return self._later(made), request

    def Split(self, color: int = 0, key: int = 0) -> Self:
        return self._adopt(super().Split(color, key))

    def Split_type(self, split_type: int, key: int = 0, info: MPI.Info = MPI.INFO_NULL) -> Self:
        return self._adopt(super().Split_type(split_type, key, info))

    def Create(self, group: MPI.Group) -> Self:
        return self._adopt(super().Create(group))

    def Create_group(self, group: MPI.Group, tag: int = 0) -> Self:
        return self._adopt(super().Create_group(group, tag))

    def Shrink(self) -> Self:
        return self._adopt(super().Shrink())

    def Revoke(self) -> None:
        """MPI's. Collectives of this rank raise MPI's error from here on.

        Those of ranks that wait for this one in transport direct raise PeerError.
        """
        super().Revoke()
        self._abandon()
        self.__class__ = _serving(self._face, "mpi", self._topology)


class Grid(MPI.Cartcomm):
    """What a communicator with a Cartesian topology derives beside."""

    def Sub(self, remain_dims: Sequence[bool]) -> MPI.Cartcomm:
        own: Any = self
        part: MPI.Cartcomm = own._adopt(super().Sub(remain_dims))
        return part


class Undecided(Transport):
    """Before the choice of a transport, which is made at the first call that may block.

    Idup of `auto` gives such a communicator: it must not wait for other ranks, and all of them
    make that first call. Nonblocking calls are MPI's until then.
    """

    def _plan(self, name: str, info: MPI.Info, *arguments: Any) -> Plan:
        if self == MPI.COMM_NULL:
            return super()._plan(name, info, *arguments)
        own: Any = self
        own._settle()
        made: Plan = own._plan(name, info, *arguments)
        return made


def one_of_ours(face: type, comm: MPI.Comm, choice: Choice) -> Any:
    """A user's class over an MPI communicator as it is; collective over that one's ranks.

    Raises:
        Exception: As `Derivable._settle`; the MPI communicator is freed.
    """
    # not Cartcomm.__new__, which Python refuses where Cartcomm is not the first base
    made: Any = MPI.Intracomm.__new__(_serving(face, "", _topology_of(comm)), comm)
    made._choice = choice
    if made != MPI.COMM_NULL:
        try:
            made._settle()
        except Exception:
            MPI.Comm.Free(made)
            raise
    return made


def plain(comm: MPI.Comm) -> MPI.Intracomm:
    """The same MPI communicator as an object of mpi4py's own class."""
    own: type[MPI.Intracomm] = _topology_of(comm) or MPI.Intracomm
    return own(comm)


def _topology_of(comm: MPI.Comm) -> Any:
    return next((each for each in _TOPOLOGIES if isinstance(comm, each)), None)


def _exchanges(comm: Transport) -> bool:
    """Whether its beginning is more than nothing, and may fail; alike on all ranks."""
    return type(comm)._begin is not Transport._begin


@functools.cache
def _serving(face: type, transport: str, topology: type | None) -> Any:
    """The class `face` with a transport's calls, and a topology's, between it and mpi4py's."""
    bases: list[type] = [face, TRANSPORTS.get(transport, Undecided)]
    bases += [_TOPOLOGIES[topology]] if topology else []
    own = {"__module__": face.__module__, "__doc__": face.__doc__}
    return type(face.__name__, tuple(bases), own | {"_face": face, "_topology": topology})


_TOPOLOGIES: dict[type, type] = {
    MPI.Cartcomm: Grid,
    MPI.Graphcomm: MPI.Graphcomm,
    MPI.Distgraphcomm: MPI.Distgraphcomm,
}


def _deciding(name: str) -> Callable[..., Any]:
    original = getattr(MPI.Intracomm, name)

    @functools.wraps(original)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if self == MPI.COMM_NULL:
            return original(self, *arguments, **named)
        self._settle()
        return getattr(self, name)(*arguments, **named)

    return call


def _may_block() -> set[str]:
    """The collectives of mpi4py that some transport does itself, without the nonblocking ones."""
    classes = {base for each in TRANSPORTS.values() for base in each.__mro__}
    own = {name for each in classes - set(Transport.__mro__) for name in vars(each)}
    return {name for name in own & set(dir(MPI.Intracomm)) if not re.match("_|I[a-z]", name)}


for _name in _may_block() - {"Free", "Disconnect"}:
    setattr(Undecided, _name, _deciding(_name))
