"""The face of the library: an mpi4py communicator whose arrays live in a kind of memory.

Knows its kind and its transport; how a transport moves data is that file's own affair.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from mpi4py import MPI

from hbmcomm.allocation import Allocating
from hbmcomm.choice import agree, check, choose
from hbmcomm.collectives.transports.fixed import Fixed
from hbmcomm.derived import Derivable, Undecided, one_of_ours, plain
from hbmcomm.errors import HbmcommError
from hbmcomm.memory.policy.kinds import Nodes
from hbmcomm.memory.topology.sysfs import format_list


class Communicator(Allocating, Derivable):
    """A drop-in for an mpi4py communicator, with arrays in a kind and a choice of transport.

    Wraps a duplicate of `comm`, so that its traffic never meets the caller's. Making one is
    collective; so are Free and the end of a `with` block, which free the duplicate alone.

    Communicators derived from it (Dup, Split, Create, Shrink ...) keep class, kind and transport.
    Those with a topology (Create_cart, Create_graph, Create_dist_graph, Sub) do as well, and are
    an MPI.Cartcomm, Graphcomm or Distgraphcomm besides. With transport auto, one whose ranks cannot
    share memory has transport mpi. What Idup makes decides so at its first blocking collective.
    Intercommunicators, and what Merge, Create_from_group and Ishrink make, are mpi4py's own; the
    intracommunicators among them can be wrapped. `kind`, `nodes`, `device` and `transport` are
    read-only.

    With transport direct, ranks that call different collectives at the same point all get
    CallMismatch, and those that count on a rank that died or left get PeerError, here or at the
    next call; the communicator is unusable then. It serves one thread at a time and no child of a
    fork; its arrays are shared with such a child, not copied. The `*_init` calls return a `Plan`.

    Args:
        comm: Any intracommunicator; left out: MPI.COMM_WORLD. Another Communicator as well: nothing
            of its kind, nodes, device and transport counts, only the arguments here do.
        kind: Where its arrays live, a name of `hbmcomm.KINDS`; left out: `hbmcomm.default_kind()`.
        transport: "direct" (our own, over memory that all ranks share), "mpi" (mpi4py's buffer
            calls), "pickle" (its lower-case calls), or "auto": direct where the ranks can share
            memory and have room for it, else mpi.
        nodes: Bind arrays strictly to these NUMA nodes of the kind.
        device: A device-dax file such as "/dev/dax0.0": arrays, and all that collectives keep, live
            on it. The kind is then "dax", the transport direct. The first communicator of a job
            takes the whole device, in equal parts for its ranks; what is derived from it shares
            that, and the last of them, with the last array, gives it back. No two jobs have it
            at a time (see `hbmcomm.memory.dax.claims` for who is not seen), and what earlier ones
            left there is zero before anyone gets it.

    Raises:
        KindUnavailable: On every rank, when any of them has no such memory, may not use the device,
            or another job has it.
        OutOfMemory: On every rank: transport direct, and one of them has no memory left for its
            part of the arena. Later, `empty` asks for the calling rank alone: only a rank that
            lacks the memory gets OutOfMemory then.
        ArenaUnavailable: On every rank: transport direct, and two ranks cannot share memory.
        ValueError: On every rank: unknown kind or transport, or one that a device cannot serve;
            on one alone: COMM_NULL.
        TypeError: On every rank: another argument has the wrong type; on one alone: `comm` is not
            an intracommunicator.
    """

    kind = Fixed[str]("Where its arrays live.")
    nodes = Fixed[Nodes | None]("The NUMA nodes asked for; None: those that the kind means.")
    device = Fixed[str | None]("The device-dax file that its arrays live on, or None.")
    transport = Fixed[str]("What moves its data, by name.")

    # mpi4py makes what it derives by a bare __new__ of a class that has a transport's calls, and
    # fills it in later; users call their own class, which has none yet.
    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
        device: str | os.PathLike[str] | None = None,
    ) -> Self:
        if comm is None:
            if hasattr(cls, "_face"):
                return MPI.Intracomm.__new__(cls)
            comm = MPI.COMM_WORLD
        check(comm)
        duplicate = plain(comm).Dup()
        try:
            choice = agree(duplicate, lambda: choose(kind, transport, nodes, device))
        except (HbmcommError, TypeError, ValueError):
            duplicate.Free()
            raise
        made: Self = one_of_ours(getattr(cls, "_face", cls), duplicate, choice)
        return made

    def __init__(
        self,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
        device: str | os.PathLike[str] | None = None,
    ) -> None:
        if comm is None and self == MPI.COMM_NULL:
            raise TypeError(
                "the class of a communicator that exists needs one to wrap; "
                "Communicator() wraps MPI.COMM_WORLD"
            )

    @classmethod
    def Create_from_group(
        cls,
        group: MPI.Group,
        stringtag: str = "org.mpi4py",
        info: MPI.Info = MPI.INFO_NULL,
        errhandler: MPI.Errhandler | None = None,
    ) -> MPI.Intracomm:
        """As in mpi4py, and of its own class; it can be wrapped."""
        return MPI.Intracomm.Create_from_group(group, stringtag, info, errhandler)

    def __repr__(self) -> str:
        """Class, topology, rank, transport, kind and its NUMA nodes or device; sends nothing."""
        name = type(self).__name__
        if self._topology is not None:
            name += f" and {self._topology.__name__}"
        if MPI.Is_finalized():
            return f"<{name}: MPI is finalized>"
        if self == MPI.COMM_NULL:
            return f"<{name}: COMM_NULL>"
        place = f"rank {self.rank} of {self.size}"
        if not hasattr(self, "_choice"):  # mpi4py made it (Ishrink)
            return f"<{name}: {place}>"
        transports = self._choice.transports if isinstance(self, Undecided) else [self.transport]
        return f"<{name}: {place}, transport {' or '.join(transports)}, kind {self._memory()}>"

    def _memory(self) -> str:
        """The kind and where it is, as far as this rank knows."""
        if self.device is not None:
            return f"{self.kind} on {self.device}"
        try:
            found = self._supply().kind
        except HbmcommError:  # such as a thread moved to CPUs that the kind has no memory for
            return str(self.kind)
        return f"{self.kind} on node {format_list(found.nodes)}{' (emulated)' * found.emulated}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """COMM_NULL is pickled as mpi4py's; others cannot be pickled, as in mpi4py."""
        return (type(plain(self)), ()) if self == MPI.COMM_NULL else super().__reduce__()

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

    def Create_cart(
        self, dims: Sequence[int], periods: Sequence[bool] | None = None, reorder: bool = False
    ) -> CartCommunicator:
        return cast("CartCommunicator", self._adopt(super().Create_cart(dims, periods, reorder)))

    def Create_graph(
        self, index: Sequence[int], edges: Sequence[int], reorder: bool = False
    ) -> GraphCommunicator:
        return cast("GraphCommunicator", self._adopt(super().Create_graph(index, edges, reorder)))

    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> DistgraphCommunicator:
        made = super().Create_dist_graph(sources, degrees, destinations, weights, info, reorder)
        return cast("DistgraphCommunicator", self._adopt(made))

    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> DistgraphCommunicator:
        made = super().Create_dist_graph_adjacent(
            sources, destinations, sourceweights, destweights, info, reorder
        )
        return cast("DistgraphCommunicator", self._adopt(made))


if TYPE_CHECKING:  # the classes are made as they are needed, with a transport's calls in them

    class CartCommunicator(Communicator, MPI.Cartcomm):
        """What Create_cart makes, for annotations."""

        def Sub(self, remain_dims: Sequence[bool]) -> CartCommunicator: ...

    class GraphCommunicator(Communicator, MPI.Graphcomm):
        """What Create_graph makes, for annotations."""

    class DistgraphCommunicator(Communicator, MPI.Distgraphcomm):
        """What Create_dist_graph and Create_dist_graph_adjacent make, for annotations."""
