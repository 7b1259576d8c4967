"""The C core as Python sees it: one rank's state of a communicator, and its errors.

The only module that calls the compiled core, but for claims on devices (`memory.claim`). Turns its
status codes into exceptions, at one
place. Knows codes and addresses; what mpi4py's arguments mean is `direct`'s affair.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm._native import _core  # type: ignore[attr-defined]
from hbmcomm.errors import CallMismatch, HbmcommError, PeerError
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.topology import current

ffi: Any = _core.ffi
lib: Any = _core.lib

OPERATIONS = (
    *("Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall"),
    *("Reduce", "Allreduce", "Reduce_scatter_block"),
)
"""By the core's numbers; from lib.HBM_FOREIGN on follow those of FOREIGN."""

FOREIGN = (
    *("Gatherv", "Scatterv", "Allgatherv", "Alltoallv", "Alltoallw", "Reduce_scatter"),
    *("Scan", "Exscan", "barrier", "bcast", "gather", "scatter", "allgather", "alltoall"),
    *("reduce", "allreduce", "scan", "exscan"),
    *OPERATIONS,  # on what the core has no code for
)
"""Calls that MPI serves; the core is told of them, so that ranks never wait for different ones."""

DTYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "longdouble"),
    *("complex64", "complex128", "clongdouble", "bool", "packed"),
)
"""By the core's numbers."""

REDUCTIONS = ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR")
"""By the core's numbers."""

_ROOTED = ("Bcast", "Gather", "Scatter", "Reduce")
_REDUCING = ("Reduce", "Allreduce", "Reduce_scatter_block")


class Setting(NamedTuple):
    """What one rank tells the others when they open a communicator."""

    node: int
    cpus: frozenset[int]


class Core:
    """One rank's state in the C core; `handle` is what its calls take."""

    def __init__(self, arena: Arena, rank: int, settings: Sequence[Setting]) -> None:
        size = len(settings)
        self._rank = rank
        segments = ffi.new("uintptr_t[]", arena.addresses)
        nodes = ffi.new("int32_t[]", [setting.node for setting in settings])
        cpus = frozenset().union(*(setting.cpus for setting in settings))
        setup = ffi.new("hbm_setup *")
        setup.rank, setup.size, setup.lock = rank, size, arena.lock
        setup.oversubscribed = len(cpus) < size
        setup.cache_bytes = _cache_bytes(cpus)
        setup.segment_bytes = arena.segment_bytes
        setup.segments, setup.nodes = segments, nodes
        if arena.claims:
            claims = ffi.new("uintptr_t[]", arena.claims)
            setup.claims, setup.boot = claims, arena.boot
        opened = lib.hbm_open(setup)
        if opened == ffi.NULL:
            raise HbmcommError(f"transport direct serves up to 1024 ranks on a node; found {size}")
        self.handle = ffi.gc(opened, lib.hbm_free)  # plans may outlive the communicator
        # Also at exit, before MPI finalises: that waits for the others, who may wait for this rank.
        self._close = weakref.finalize(self, _close, self.handle, arena)

    def close(self) -> None:
        """Leave: whoever still waits for this rank gets an error."""
        self._close()

    @property
    def link_bytes(self) -> int:
        """Bytes of messages that this rank has read from or written to other nodes so far.

        Another node's are the segments of ranks whose CPUs are there; control words do not count.

        In Bcast and Allgather each byte crosses once to every other node, if all arrays lie in the
        arena and a rank's block has more than 2 KiB (where ranks share CPUs: more than 32 KiB).
        Else, and in Gather, Scatter and Alltoall, it crosses once for each rank there that takes.
        """
        return int(lib.hbm_link_bytes(self.handle))

    def error(self, status: int) -> BaseException:
        """What to raise for a status that is not 0."""
        global _interrupt
        if _interrupt is not None and status == lib.HBM_INTERRUPTED:
            interrupt, _interrupt = _interrupt, None
            return interrupt
        if status == lib.HBM_BUSY:
            return HbmcommError(
                "two threads are inside one communicator; give each thread its own: comm.Dup()"
            )
        if status == lib.HBM_FORKED:
            return HbmcommError(
                "this process is a fork of a rank and is none itself; call from the rank, "
                "or start children with multiprocessing's method 'spawn'"
            )
        return _failure(self.handle, self._rank)


def setting() -> Setting:
    """This rank's CPUs and the node of the first of them."""
    cpus = frozenset(os.sched_getaffinity(0))
    nodes = [node.id for node in current().nodes if cpus & set(node.cpus)]
    return Setting(nodes[0] if nodes else 0, cpus)


def _cache_bytes(cpus: frozenset[int]) -> int:
    """The last-level caches that the CPUs of the ranks have together (sysfs)."""
    last = [cache for cache in current().caches if cache.node is None and cpus & set(cache.cpus)]
    return sum(cache.size_bytes for cache in last) or 32 * 2**20


def _close(handle: Any, arena: Arena) -> None:
    """`arena` is here so that its memory outlives the core's last word in it."""
    if lib.hbm_close(handle) == lib.HBM_BUSY:
        _in_use.append((handle, arena))


def _failure(handle: Any, own: int) -> HbmcommError:
    why = ffi.new("hbm_failure *")
    lib.hbm_failure_of(handle, why)
    if why.status == lib.HBM_MISMATCH:
        calls = _named(why.own), _named(why.others)
        told = f"rank {why.rank} called {calls[0]}, rank {why.other} called {calls[1]}"
        if calls[0] == calls[1]:  # found late, when both had made other calls since
            told = f"rank {why.rank} and rank {why.other} differed some calls ago"
        return CallMismatch(
            f"ranks called different collectives: {told}; the communicator is of no use now"
        )
    told = {
        lib.HBM_PEER_DIED: "died",
        lib.HBM_CLOSED: "has left the communicator" if why.rank != own else "(this one) freed it",
        lib.HBM_INTERRUPTED: "was interrupted in a collective",
    }[why.status]
    return PeerError(f"rank {why.rank} {told}; the communicator is of no use now")


def _named(call: Any) -> str:
    """A call in mpi4py's words, such as Reduce(1,024 x float32, SUM, root=0)."""
    if call.operation >= lib.HBM_FOREIGN:
        return f"{FOREIGN[call.operation - lib.HBM_FOREIGN]} (served by MPI)"
    name = OPERATIONS[call.operation]
    if name == "Barrier":
        return "Barrier()"
    told = [f"{call.count:,} x {DTYPES[call.dtype]}"]
    if name in _REDUCING:
        told.append(REDUCTIONS[call.reduction])
    if name in _ROOTED:
        told.append(f"root={call.root}")
    return f"{name}({', '.join(told)})"


_in_use: list[tuple[Any, Arena]] = []
"""What was left while another thread waited in it: that thread may still touch it."""

_interrupt: BaseException | None = None


def _keep(_type: Any, error: BaseException, _trace: Any) -> None:
    global _interrupt
    _interrupt = error


@ffi.def_extern(error=1, onerror=_keep)  # type: ignore[untyped-decorator]
def hbm_interrupted() -> int:
    """Called by a rank that waits: signal handlers run here, and what they raise ends the call."""
    return 0


def _reads_arrays() -> bool:
    """Whether the core reads an array's fields as NumPy means them."""
    address, entries = ffi.new("uintptr_t *"), ffi.new("uint64_t *")
    for array in (np.zeros((3, 5), "float32"), np.zeros(7, "int16")[2:], np.zeros(0, "complex128")):
        code = lib.hbm_read_array(id(array), 1, address, entries)
        if code < 0 or DTYPES[code] != array.dtype.name:
            return False
        if (address[0], entries[0]) != (array.__array_interface__["data"][0], array.size):
            return False
    awkward = (np.zeros((4, 4))[:, 1], np.zeros(3, ">f8"), np.zeros(3, "S4"))
    return all(lib.hbm_read_array(id(array), 1, address, entries) < 0 for array in awkward)


lib.hbm_on_wait(lib.hbm_interrupted)
lib.hbm_numpy(id(np.ndarray), id(MPI.IN_PLACE))
if not _reads_arrays():  # another implementation of Python: every call takes the longer way
    lib.hbm_numpy(0, 0)
