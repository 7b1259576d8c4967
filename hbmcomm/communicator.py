"""The library's main class: an mpi4py communicator with arrays in a kind of memory.

Knows its kind and its transport; each transport's file knows how it moves data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from mpi4py import MPI

from hbmcomm.allocation import Allocating
from hbmcomm.derived import Derivable, Undecided, unwrapped, wrap
from hbmcomm.errors import HbmcommError
from hbmcomm.memory.kinds import Nodes
from hbmcomm.memory.sysfs import format_list
from hbmcomm.options import check_wrappable, options_of, run_on_all
from hbmcomm.sharing import Sharing
from hbmcomm.transports.transport import ReadOnly


class Communicator(Allocating, Sharing, Derivable):
    """A drop-in for an mpi4py communicator, with arrays in a kind and a choice of transport.

    Wraps a duplicate of `comm`, so that its messages are separate from the caller's. The
    constructor is collective; so are Free and the end of a `with` block, which free only the
    duplicate.

    Communicators derived from it (Dup, Split, Create, Shrink ...) keep class, kind and transport.
    Those with a topology (Create_cart, Create_graph, Create_dist_graph, Sub) do as well, and are
    also an MPI.Cartcomm, Graphcomm or Distgraphcomm. With transport auto, each of them takes the
    transport that fits its ranks. The result of Idup decides this at its first blocking collective.
    Intercommunicators, and the results of Merge, Create_from_group and Ishrink, are of mpi4py's
    classes; intracommunicators among them can be wrapped. `kind`, `nodes`, `device` and `transport`
    are read-only.

    With transport direct, ranks that call different collectives at the same point all get
    CallMismatch, and ranks that wait for a rank that died or left get PeerError, in this call or
    the next; the communicator is unusable then. With hierarchical that is so on each host; ranks of
    other hosts get PeerError. A rank that waits inside MPI, as in Recv, gets neither.
    Errors are MPI.Exceptions too, and the communicator's error handler sees them first. A
    communicator is neither thread-safe nor fork-safe; its arrays are
    shared with a child of a fork, not copied. The `*_init` calls return a `Plan`.

    Args:
        comm: Any intracommunicator; left out: MPI.COMM_WORLD. It may be a Communicator: its kind,
            nodes, device and transport are not inherited.
        kind: Memory of its arrays, a name of `hbmcomm.KINDS`; left out: `hbmcomm.default_kind()`.
        transport: "direct" (the library's own, over memory that all ranks share), "hierarchical"
            (direct among ranks that can share memory, messages of MPI between these groups), "mpi"
            (mpi4py's buffer calls), "pickle" (its lower-case calls), or "auto": direct where all
            ranks can share memory and have enough of it, hierarchical where some of them can, else
            mpi.
        nodes: Bind arrays strictly to these NUMA nodes of the kind.
        device: A device-dax file such as "/dev/dax0.0": arrays are on it. The kind is then "dax",
            the transport direct. The first communicator of a job takes the whole device, in equal
            parts for its ranks; communicators derived from it share that, and the last of them,
            with the last array, releases it. Only one job has it at a time
            (`hbmcomm.memory.owner_table` lists what is not detected), and bytes of earlier jobs
            are zeroed before an array gets them.

    Raises:
        KindUnavailable: On every rank, when any of them has no such memory, may not use the device,
            or another job has it.
        OutOfMemory: On every rank: transport direct, and one of them has no memory left for its
            part of the arena. `empty` is local: only a rank that lacks memory gets OutOfMemory.
        ArenaUnavailable: On every rank: transport direct, and two ranks cannot share memory.
        ValueError: On every rank: unknown kind or transport, or one that does not work with a
            device; on this rank only: COMM_NULL.
        TypeError: On every rank: another argument has the wrong type; on this rank only: `comm` is
            not an intracommunicator.
    """

    __module__ = "hbmcomm"  # its public name

    kind = ReadOnly[str]("The kind of its arrays.")
    nodes = ReadOnly[Nodes | None]("The NUMA nodes requested; None: those of the kind.")
    device = ReadOnly[str | None]("The device-dax file of its arrays, or None.")
    transport = ReadOnly[str]("The name of the transport that moves its data.")

    # For a derived communicator mpi4py calls __new__ without arguments, on a class with a
    # transport's calls, and sets the handle later. Users call a class without a transport.
    def __new__(
        cls,
        comm: MPI.Comm | None = None,
        kind: str | None = None,
        transport: str = "auto",
        nodes: Iterable[int] | None = None,
        device: str | os.PathLike[str] | None = None,
    ) -> Self:
        if comm is None:
            if hasattr(cls, "_public_class"):
                return MPI.Intracomm.__new__(cls)
            comm = MPI.COMM_WORLD
        check_wrappable(comm)
        duplicate = unwrapped(comm).Dup()
        try:
            options = run_on_all(duplicate, lambda: options_of(kind, transport, nodes, device))
        except (HbmcommError, TypeError, ValueError):
            duplicate.Free()
            raise
        wrapped: Self = wrap(getattr(cls, "_public_class", cls), duplicate, options)
        return wrapped

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
                "the class of an existing communicator takes a communicator to wrap; found none; "
                "call Communicator() to wrap MPI.COMM_WORLD"
            )

    @classmethod
    def Create_from_group(
        cls,
        group: MPI.Group,
        stringtag: str = "org.mpi4py",
        info: MPI.Info = MPI.INFO_NULL,
        errhandler: MPI.Errhandler | None = None,
    ) -> MPI.Intracomm:
        """mpi4py's communicator of a group; it can be wrapped."""
        return MPI.Intracomm.Create_from_group(group, stringtag, info, errhandler)

    def __repr__(self) -> str:
        """Class, topology, rank, transport, kind and its NUMA nodes or device; not collective."""
        name = type(self).__name__
        if self._topology is not None:
            name += f" and {self._topology.__name__}"
        if MPI.Is_finalized():
            return f"<{name}: MPI is finalized>"
        if self == MPI.COMM_NULL:
            return f"<{name}: COMM_NULL>"
        where = f"rank {self.rank} of {self.size}"
        if not hasattr(self, "_options"):  # a result of Ishrink
            return f"<{name}: {where}>"
        transports = self._options.transports if isinstance(self, Undecided) else [self.transport]
        return f"<{name}: {where}, transport {' or '.join(transports)}, kind {self._memory()}>"

    def _memory(self) -> str:
        """The kind and its device or NUMA nodes, as far as this rank knows."""
        if self.device is not None:
            return f"{self.kind} on {self.device}"
        try:
            memory = self._array_factory().kind
        except HbmcommError:  # such as after a move to CPUs that have no memory of the kind
            return str(self.kind)
        return f"{self.kind} on node {format_list(memory.nodes)}{' (emulated)' * memory.emulated}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """COMM_NULL is pickled as mpi4py's; others cannot be pickled, as in mpi4py."""
        return (type(unwrapped(self)), ()) if self == MPI.COMM_NULL else super().__reduce__()

    if not TYPE_CHECKING:  # a checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Only called for a name that is no attribute."""
            advice = "; Free(), or the end of a with block, ends it" if name == "close" else ""
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}{advice}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:  # other ranks may not have it, and Free would wait for them
            self._abandon()
        elif self != MPI.COMM_NULL:
            self.Free()

    def Create_cart(
        self, dims: Sequence[int], periods: Sequence[bool] | None = None, reorder: bool = False
    ) -> CartCommunicator:
        return cast("CartCommunicator", self._wrap(super().Create_cart(dims, periods, reorder)))

    def Create_graph(
        self, index: Sequence[int], edges: Sequence[int], reorder: bool = False
    ) -> GraphCommunicator:
        return cast("GraphCommunicator", self._wrap(super().Create_graph(index, edges, reorder)))

    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> DistgraphCommunicator:
        graph = super().Create_dist_graph(sources, degrees, destinations, weights, info, reorder)
        return cast("DistgraphCommunicator", self._wrap(graph))

    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: MPI.Info = MPI.INFO_NULL,
        reorder: bool = False,
    ) -> DistgraphCommunicator:
        graph = super().Create_dist_graph_adjacent(
            sources, destinations, sourceweights, destweights, info, reorder
        )
        return cast("DistgraphCommunicator", self._wrap(graph))


if TYPE_CHECKING:  # `derived` creates the real classes, each with the calls of a transport

    class CartCommunicator(Communicator, MPI.Cartcomm):
        """The result of Create_cart, for annotations."""

        def Sub(self, remain_dims: Sequence[bool]) -> CartCommunicator: ...

    class GraphCommunicator(Communicator, MPI.Graphcomm):
        """The result of Create_graph, for annotations."""

    class DistgraphCommunicator(Communicator, MPI.Distgraphcomm):
        """The result of Create_dist_graph and Create_dist_graph_adjacent, for annotations."""
