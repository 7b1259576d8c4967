"""The buffers of one launch: allocated in a kind, touched, and proven to be where they should be.

Pin first, then allocate, then touch: memkind and first touch both decide at that moment.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.machine import facts
from experiments.measure.operations import Array
from experiments.model.errors import Misplaced
from experiments.model.launch import ARENA, NUMPY, PRIVATE
from experiments.schedule.footprint import MEMORY_SHARE, sizes

PAGE = 4096
ORDINARY = "regular"
Memory = tuple[str, str, str]  # kind, locality and buffers, as Cell.memory
EXACT = ("move_pages", "get_mempolicy")  # ways to learn the node of each page


class Unavailable(Exception):
    """These buffers cannot be had on this machine; the text says why, alike on every rank."""


@dataclass(frozen=True)
class Pool:
    """Send and receive memory of one kind and locality on one rank, cut into slots by use.

    Attributes:
        communicators: by transport; all of them work on the same memory.
        lacking: {transport: why these ranks cannot have it}; alike on every rank.
        nodes: where its pages belong.
        send, recv: flat arrays of the launch's dtype.
        placement: {node: bytes} of both, as the kernel reports it before anything is timed.
        strict: whether a page elsewhere voids the launch.
    """

    communicators: Mapping[str, MPI.Intracomm]
    lacking: Mapping[str, str]
    kind: str
    emulated: bool
    nodes: tuple[int, ...]
    send: Array
    recv: Array
    placement: dict[int, int]
    strict: bool

    @property
    def nbytes(self) -> int:
        """Bytes of both buffers."""
        return self.send.nbytes + self.recv.nbytes

    def slots(
        self, operation: str, elements: int, rank: int, ranks: int
    ) -> list[tuple[Array, Array]]:
        """Disjoint (send, recv) views for messages of that many elements; at least one.

        Slots begin on pages, so that small ones crowd the same cache sets and push each other out.
        """
        given, taken = (messages * elements for messages in sizes(operation, rank, ranks))
        page = PAGE // self.send.itemsize
        steps = [-(-max(length, 1) // page) * page for length in (given, taken)]
        fitting = min(self.send.size // steps[0], self.recv.size // steps[1]) or 1
        return [
            (
                self.send[i * steps[0] : i * steps[0] + given],
                self.recv[i * steps[1] : i * steps[1] + taken],
            )
            for i in range(fitting)
        ]


def recorded(pool: Pool, locality: str, after: Mapping[int, int]) -> dict[str, object]:
    """What a result holds of a rank's buffers once they have been measured.

    Args:
        after: {node: bytes} after timing.
    """
    return {
        "kind": pool.kind,
        "emulated": pool.emulated,
        "nodes": list(pool.nodes),
        "source": hbmcomm.source(pool.send) or "numpy",
        "placement_method": hbmcomm.placement_method(),
        "placement": _by_node(pool.placement),
        "locality": locality,
        "bytes": pool.nbytes,
        "placement_after": _by_node(after),
    }


def _by_node(placement: Mapping[int, int]) -> dict[str, int]:
    """As JSON holds it."""
    return {str(node): size for node, size in sorted(placement.items())}


def require_memory(comm: MPI.Intracomm, own: int, launch: str) -> None:
    """Refuse, before anything is touched, buffers that the machine has no room for; a collective.

    Args:
        own: bytes that this rank needs.
        launch: its name.
    """
    needed, available = comm.allreduce(own), facts.available_memory()
    if needed > MEMORY_SHARE * available:
        raise SystemExit(
            f"launch {launch} needs {needed / 2**20:.0f} MiB of buffers on its "
            f"{comm.size} ranks; {available / 2**20:.0f} MiB are free, of which it may take "
            f"{MEMORY_SHARE:.0%}: ask for smaller --sizes"
        )


def make_pool(
    comm: MPI.Intracomm,
    memory: Memory,
    transports: Iterable[str],
    dtype: str,
    lengths: tuple[int, int],
    cpu: int,
) -> Pool:
    """Allocate, touch and check; a collective over comm.

    Args:
        transports: the first that can be had gives the memory, for all to work on.
        lengths: elements of this rank's send and receive memory.
        cpu: where this rank is pinned; decides which nodes are local and which remote.

    Raises:
        Unavailable: on every rank, when any rank cannot have the kind or so much of it, or when
            no transport is left.
        Misplaced: on every rank, when a strict kind's pages are elsewhere.
    """
    kind, locality, buffers = memory
    arrays: list[Array] = []
    problem = ""
    try:
        nodes = remote_nodes(kind, cpu) if locality == "remote" else None
        resolved = hbmcomm.resolve(kind, nodes)
    except (hbmcomm.HbmcommError, Unavailable) as error:
        problem = advised(kind, error)
    agree(comm, problem, Unavailable)
    made, lacking = _communicators(comm, kind, nodes, transports)
    allocators: dict[str, Callable[[int, str], Array]] = {
        ARENA: next(iter(made.values())).empty,
        PRIVATE: partial(hbmcomm.empty, kind=kind, nodes=nodes),
        NUMPY: np.empty,
    }
    try:
        with _in_turn(comm, resolved.strict):
            arrays = [allocators[buffers](length, dtype) for length in lengths]
            for array in arrays:
                array.fill(comm.rank + 1)
    except hbmcomm.OutOfMemory as error:
        problem = str(error)
    agree(comm, problem, Unavailable)
    placed = placement_of(*arrays)
    home = home_nodes(resolved, cpu)
    strict = is_strict(resolved, home)
    nbytes = sum(array.nbytes for array in arrays)
    # Every rank takes part: a rank on a node without memory has no strict `regular`, others have.
    agree(comm, misplacement(kind, home, placed, nbytes) if strict else "", Misplaced)
    return Pool(made, lacking, kind, resolved.emulated, home, arrays[0], arrays[1], placed, strict)


def _communicators(
    comm: MPI.Intracomm, kind: str, nodes: tuple[int, ...] | None, transports: Iterable[str]
) -> tuple[dict[str, hbmcomm.Communicator], dict[str, str]]:
    """By transport, and why ranks that cannot share memory go without one; a collective."""
    made: dict[str, hbmcomm.Communicator] = {}
    lacking: dict[str, str] = {}
    for transport in transports:
        try:
            made[transport] = hbmcomm.Communicator(
                comm, kind=kind, transport=transport, nodes=nodes
            )
        except hbmcomm.ArenaUnavailable as reason:
            lacking[transport] = str(reason)
        except (hbmcomm.OutOfMemory, hbmcomm.KindUnavailable) as reason:
            raise Unavailable(advised(kind, reason)) from None
    if not made:
        raise Unavailable("; ".join(lacking.values()))
    return made, lacking


def advised(kind: str, error: Exception) -> str:
    """The library's error, and the flag of `./inv run` that may help."""
    if not isinstance(error, hbmcomm.KindUnavailable):
        return str(error)
    if kind.startswith("hbw") and not hbmcomm.topology().hbm.nodes:
        return f"{error}. Here: ./inv run --emulate-hbw"
    if "SYS_NICE" in str(error):
        return f"{error}. Here: ./inv run --profiles tuned"
    return str(error)


def home_nodes(kind: hbmcomm.Kind, cpu: int) -> tuple[int, ...]:
    """Where a kind's pages belong that a rank on this CPU touches first.

    Of ordinary memory that is the nearest node. hbmcomm lets `regular` go on to the other ordinary
    nodes when that one is full, as a program may want; a measurement of both would be of neither.
    """
    if kind.name != ORDINARY:
        return kind.nodes
    topology = hbmcomm.topology()
    return topology.nearest(topology.node_of_cpu(cpu), among=kind.nodes)


def is_strict(kind: hbmcomm.Kind, home: tuple[int, ...]) -> bool:
    """Whether a page elsewhere voids a launch: of strict kinds, and of ordinary memory on one node.

    Ordinary memory counts only where the kernel reports each page: of an arena on several nodes,
    numa_maps knows no more than the whole, and a share elsewhere is a caution.
    """
    if kind.name == ORDINARY and home != kind.nodes:
        return hbmcomm.placement_method() in EXACT
    return kind.strict


def misplacement(kind: str, nodes: tuple[int, ...], placed: Mapping[int, int], nbytes: int) -> str:
    """What is wrong with where the bytes of touched buffers are.

    Args:
        kind: its name.
        nodes: where they belong.
        placed: {node: bytes}, as the kernel reports it.
        nbytes: of all buffers together; the kernel must account for each of them.
    """
    there = sum(placed.get(node, 0) for node in nodes)
    if there == nbytes == sum(placed.values()):
        return ""
    return (
        f"kind {kind}: all {nbytes} bytes belong on nodes {list(nodes)}; "
        f"the kernel reports {dict(placed)}: free memory there, or ask for smaller --sizes"
    )


def remote_nodes(kind: str, cpu: int) -> tuple[int, ...]:
    """The node farthest from a CPU among those that the kind may be bound to.

    Raises:
        Unavailable: where none of them is farther than another.
    """
    topology = hbmcomm.topology()
    accepted = tuple(node for node in topology.memory_nodes if _accepts(kind, node))
    remote = topology.farthest(topology.node_of_cpu(cpu), among=accepted)
    if not remote:
        nodes = ", ".join(f"node {node}" for node in accepted) or "none"
        raise Unavailable(
            f"{kind} far from CPU {cpu} needs two nodes of that memory at different distances; "
            f"this machine offers {nodes}"
        )
    return remote[-1:]


def _accepts(kind: str, node: int) -> bool:
    try:
        hbmcomm.resolve(kind, (node,))
    except hbmcomm.KindUnavailable:
        return False
    return True


@contextlib.contextmanager
def _in_turn(comm: MPI.Intracomm, strict: bool) -> Iterator[None]:
    """The block, one rank after the other where memory is strict on any; a collective.

    So that each finds free what is free: past a node's memory the kernel kills, and ranks that
    look at the same time all find room for one.
    """
    turns = comm.size if comm.allreduce(strict, MPI.LOR) else 0
    for _ in range(min(comm.rank, turns)):
        comm.Barrier()
    try:
        yield
    finally:
        for _ in range(min(comm.rank, turns), turns):
            comm.Barrier()


def agree(comm: MPI.Intracomm, problem: str, error: type[Exception]) -> None:
    """Raise on every rank when any rank has a problem, with the first one's text."""
    problems = [text for text in comm.allgather(problem) if text]
    if problems:
        raise error(problems[0])


def placement_of(*arrays: Array) -> dict[int, int]:
    """{node: bytes} of all arrays together, as the kernel reports it now."""
    total: Counter[int] = Counter()
    for array in arrays:
        if array.size:
            total.update(hbmcomm.placement(array))
    return dict(total)
