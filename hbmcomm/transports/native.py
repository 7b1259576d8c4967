"""The C core as Python sees it: its names, one rank's state of a communicator, and its errors.

The only module of the collectives that calls the compiled core by itself. Turns its status codes
into exceptions, at one place. Knows codes and addresses; what mpi4py's arguments mean is the
buffers' affair. Needs no MPI.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hbmcomm import ending
from hbmcomm._native import _core  # type: ignore[attr-defined]
from hbmcomm.errors import CallMismatch, HbmcommError, OutOfMemory, PeerError
from hbmcomm.memory import cpu_location
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.machine import current
from hbmcomm.transports import tuning

ffi: Any = _core.ffi
lib: Any = _core.lib

_MOVING = ("Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall")
_MOVING_COUNTED = ("Gatherv", "Scatterv", "Allgatherv", "Alltoallv")
_REDUCING = ("Reduce", "Allreduce", "Reduce_scatter_block", "Reduce_scatter", "Scan", "Exscan")

OPERATIONS = (*_MOVING, *_MOVING_COUNTED, *_REDUCING)
"""By the core's numbers; from lib.HBM_FOREIGN on follow those of FOREIGN."""

FOREIGN = (
    "Alltoallw",
    *OPERATIONS,  # on what the core has no code for
)
"""Calls that MPI serves; the core notes these, and compares them with the calls of others."""

FOREIGN_NUMBERS = {name: lib.HBM_FOREIGN + index for index, name in enumerate(FOREIGN)}
CALL_NAMES = dict(enumerate(OPERATIONS)) | {
    number: name for name, number in FOREIGN_NUMBERS.items()
}

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64", "longdouble")
_COMPLEX = ("complex64", "complex128", "clongdouble")
PAIRS = ("SHORT_INT", "INT_INT", "LONG_INT", "FLOAT_INT", "DOUBLE_INT", "LONG_DOUBLE_INT")
"""MPI's datatypes of a value and its index, for MAXLOC and MINLOC."""

DTYPES = (*_INTEGERS, *_FLOATS, *_COMPLEX, "bool", "packed", *PAIRS)
"""By the core's numbers."""

_OF_VALUES = ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR")
REDUCTIONS = (*_OF_VALUES, "MAXLOC", "MINLOC")
"""By the core's numbers; HBM_USER is the next."""

SHAPES = {name: lib.hbm_shape_of(number) for number, name in enumerate(OPERATIONS)}
"""What each operation moves; see interface.h."""


class Setting(NamedTuple):
    """What one rank sends to the others when they open a communicator."""

    place: cpu_location.CpuLocation
    caches: tuple[tuple[int, int], ...]
    """(first CPU, bytes) of the last-level caches of its CPUs."""
    tuning: dict[str, int]
    """What its environment changes."""


def setting() -> Setting:
    """This rank's.

    Raises:
        HbmcommError: A variable of its environment cannot be read.
    """
    global _longest
    _longest = tuning.timeout()
    place = cpu_location.of_this_process()
    last = (cache for cache in current().caches if cache.node is None)
    caches = (
        (min(cache.cpus), tuning.usable_bytes(cache))
        for cache in last
        if place.cpus & set(cache.cpus)
    )
    return Setting(place, tuple(caches), tuning.asked())


class Core:
    """One rank's state in the C core; `handle` is what its calls take.

    Args:
        names: The numbers by which errors name the ranks.
    """

    def __init__(
        self, arena: Arena, rank: int, settings: Sequence[Setting], names: Sequence[int]
    ) -> None:
        self._rank, self._arena, self._names = rank, arena, names
        self.tuning = agreed_tuning(settings)
        peers = ffi.new("hbm_peer[]", len(settings))
        for peer, place, peer_setting in zip(peers, arena.ranks, settings, strict=True):
            peer.control, peer.claim, peer.pid = place.control, place.claim, place.pid
            peer.ordinary, peer.ordinary_bytes = place.ordinary, place.ordinary_bytes
            peer.arrays, peer.array_bytes = place.arrays, place.array_bytes
            peer.package, peer.node, peer.cache = peer_setting.place[1:4]
        setup = ffi.new("hbm_setup *")
        setup.rank, setup.size, setup.boot = rank, len(settings), arena.boot
        setup.oversubscribed = is_crowded(settings)
        setup.peers, setup.staging, setup.arrays = peers, arena.ordinary_heap, arena.heap
        for field, value in self.tuning.items():
            if field.endswith("_us"):
                setattr(setup.tuning, field[:-2] + "ns", 1000 * value)
            else:
                setattr(setup.tuning, field, value)
        opened = lib.hbm_open(setup)
        if opened == ffi.NULL:
            raise HbmcommError("transport direct: the core has no memory for a communicator")
        self.handle = ffi.gc(opened, lib.hbm_free)  # plans may outlive the communicator
        _open[_address(opened)] = self
        keep(self, self.handle, arena)
        # Also at exit, before MPI finalises: MPI waits for ranks that may wait for this one.
        self._close = weakref.finalize(self, _close, self.handle, arena)

    def close(self) -> None:
        """Leave: ranks that still wait for this one get an error."""
        self._close()

    def late(self, comm: Any, seconds: float) -> PeerError:
        """The error of a rank that has waited for so long in the core's state `comm`."""
        awaited = lib.hbm_awaited(comm)
        rank = self._names[awaited] if 0 <= awaited < len(self._names) else awaited
        return PeerError(
            f"rank {self._names[self._rank]} has waited {seconds:.0f} s for rank {rank}, which has "
            f"not come to this collective: see where that rank is, or set {tuning.TIMEOUT} higher"
        )

    def error(self, status: int) -> BaseException:
        """What to raise for a status that is not 0."""
        global _interrupt
        if _interrupt is not None and status in (lib.HBM_INTERRUPTED, lib.HBM_PENDING):
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
        _look_after(self.handle, self._arena)
        return _failure(self.handle, self._rank, self._names)


def is_crowded(settings: Sequence[Setting]) -> bool:
    """Whether there are more ranks than CPUs that they may keep busy."""
    return cpu_location.usable_cpus([peer.place for peer in settings]) < len(settings)


def agreed_tuning(settings: Sequence[Setting]) -> dict[str, int]:
    """The entries of `tuning.TABLE` for these ranks; the same on all of them."""
    caches = {cache for peer in settings for cache in peer.caches}
    total = sum(size for _, size in caches) or tuning.DEFAULT_CACHE
    return tuning.chosen(settings[0].tuning, tuning.Ranks(is_crowded(settings), total))


class _Aftermath:
    """After a failure: when no other rank touches this rank's memory any more."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.is_over = False

    def find_out(self) -> bool:
        self.is_over = self.is_over or bool(lib.hbm_all_stopped(self._handle))
        return self.is_over

    def end(self) -> None:
        """Let arrays be made again where others might have written."""
        lib.hbm_release_held(self._handle)


def _close(handle: Any, arena: Arena) -> None:
    """`arena` is an argument so that its memory stays mapped until the core's last store in it."""
    if lib.hbm_close(handle) == lib.HBM_BUSY:
        return  # another thread waits in it, and may still touch what is kept
    staging = int(lib.hbm_staging(handle))
    arena.retire([] if staging == lib.HBM_NOWHERE else [staging], _look_after(handle, arena))
    forget(handle)


def keep(owner: object, handle: Any, *used: object) -> None:
    """Keep a state of the core, and what it uses, until forget().

    A finalizer that a signal's handler ends by an error is lost with its arguments, at any of its
    steps; the core, which other communicators' waits advance, would go on in memory that is gone.

    Args:
        owner: its end closes the state; if that fails, the program's end does.
    """
    _kept[_address(handle)] = (weakref.ref(owner), handle, *used)


def forget(handle: Any) -> None:
    """A state is closed."""
    _kept.pop(_address(handle), None)


@ending.at_end
def _close_rest() -> None:
    """What finalizers have left, the newest first: states of several hosts before those of one."""
    for owner, handle, *_ in reversed(list(_kept.values())):
        if owner() is None:
            lib.hbm_close(handle)


def _address(handle: Any) -> int:
    return int(ffi.cast("uintptr_t", handle))


def _look_after(handle: Any, arena: Arena) -> Callable[[], bool] | None:
    """Have memory released, later, that a failure has held back; what says that it was."""
    if not lib.hbm_has_held(handle):
        return None
    after = _Aftermath(handle)
    arena.later(after.find_out, after.end)
    return after.find_out


def _failure(handle: Any, own: int, names: Sequence[int]) -> HbmcommError:
    why = ffi.new("hbm_failure *")
    if not lib.hbm_failure_of(handle, why):
        return OutOfMemory("no memory is left for another operation in flight; wait for some")
    return explained(why, own, names)


def explained(why: Any, own: int, names: Sequence[int]) -> HbmcommError:
    """The error of an hbm_failure; any program of the job may have written into it.

    Args:
        own: This rank's number in the core.
        names: The numbers by which errors name the ranks.
    """
    end = "; the communicator is unusable now"
    if not (0 <= why.rank < len(names) and 0 <= why.other < len(names)):
        return PeerError(f"the control block of a rank holds garbage{end}")
    rank, other = names[why.rank], names[why.other]
    if why.status == lib.HBM_MISMATCH:
        what = "different collectives"
        try:
            differ = f"rank {rank} called {_named(why.own_what, why.own_count)}, rank {other} "
            if why.others_what == lib.HBM_UNKNOWN_CALL:
                differ += (
                    "made another call there or before, and more calls than are on record since; "
                    "set HBMCOMM_CHECK_CALLS=1 to stop at the first difference"
                )
            else:
                differ += f"called {_named(why.others_what, why.others_count)}"
                what = _difference(why)
        except IndexError:
            return PeerError(f"the control block of rank {rank} or {other} holds garbage{end}")
        return CallMismatch(f"ranks called {what}: {differ}{end}")
    if why.status == lib.HBM_TRUNCATED:
        return CallMismatch(
            f"rank {other} sends {why.others_count:,} bytes to rank {rank}, which expects "
            f"{why.own_count:,}{end}"
        )
    if why.status == lib.HBM_NO_MEMORY:
        return OutOfMemory(f"rank {rank} has no memory left for staging buffers{end}")
    texts = {
        lib.HBM_PEER_DIED: "died",
        lib.HBM_CLOSED: "has left the communicator" if why.rank != own else _how_left(),
        lib.HBM_INTERRUPTED: "was interrupted in a collective",
        lib.HBM_UNTRUSTED: "named memory that is not its own, or that cannot be read",
    }
    text = texts.get(why.status, "has a control block that holds garbage")
    return PeerError(f"rank {rank} {text}{end}")


def _how_left() -> str:
    if ending.is_over():
        return (
            "(this one) left it as the program ended; an exit handler that calls a communicator "
            "must be registered after hbmcomm is imported"
        )
    return "(this one) freed it"


def _difference(why: Any) -> str:
    """What ranks called that differs: other collectives, or one with other arguments."""
    own, others = (_Words.of(what) for what in (why.own_what, why.others_what))
    name = own.name
    if name != others.name:
        return "different collectives"
    if own.operation != others.operation:
        return f"{name} with different arguments (a buffer is too short, or one for MPI alone)"
    pairs = {
        "counts": (why.own_count, why.others_count),
        "types": (own.dtype, others.dtype),
        "reductions": (own.reduction, others.reduction),
        "roots": (own.root, others.root),
    }
    differing = [name for name, (mine, theirs) in pairs.items() if mine != theirs]
    return f"{name} with different {' and '.join(differing) or 'arguments'}"


class _Words(NamedTuple):
    """What a rank posts of its call; see posts.c."""

    operation: int
    dtype: int
    reduction: int
    root: int

    @classmethod
    def of(cls, what: int) -> _Words:
        return cls(what & 0xFF, what >> 8 & 0xFF, what >> 16 & 0xFF, what >> 32)

    @property
    def name(self) -> str:
        """Of the call; a lower-case one consists of calls that move bytes."""
        if self.operation < lib.HBM_REDUCE and self.reduction >= lib.HBM_OBJECTS:
            return OPERATIONS[int(self.reduction - lib.HBM_OBJECTS)].lower()
        name: str = CALL_NAMES.get(self.operation, "a call")
        return name


def _named(what: int, count: int) -> str:
    """A call in mpi4py's words, such as Reduce(1,024 x float32, SUM, root=0); see posts.c.

    Raises:
        IndexError: There is no such call.
    """
    words = _Words.of(what)
    operation, dtype, reduction, root = words
    if operation >= lib.HBM_FOREIGN:
        return f"{FOREIGN[operation - lib.HBM_FOREIGN]} (served by MPI)"
    name = OPERATIONS[operation]
    if name == "Barrier":
        return "Barrier()"
    if words.name != name:
        return f"{words.name} of an object"
    shape, type_name = SHAPES[name], DTYPES[dtype]
    text = [f"{count:,} x {type_name}" if shape.lengths == lib.HBM_EQUAL else type_name]
    if shape.reduces:
        text.append((*REDUCTIONS, "an operation of the program")[reduction])
    if shape.from_root or shape.to_root:
        text.append(f"root={root}")
    return f"{name}({', '.join(text)})"


_kept: dict[int, tuple[Any, ...]] = {}
"""By address, an owner's weak reference, its state of the core, and what that uses."""

_interrupt: BaseException | None = None


def keep_interrupt(_type: Any, error: BaseException, _trace: Any) -> None:
    """Keep what a signal handler raised in a callback of the core, for the call that it ends."""
    global _interrupt
    _interrupt = error


@ffi.def_extern(error=1, onerror=keep_interrupt)  # type: ignore[untyped-decorator]
def hbm_interrupted() -> int:
    """Called by a rank that waits: signal handlers run here, and what they raise ends the call."""
    if _longest:
        waited = ffi.new("uint64_t *")
        comm = lib.hbm_waits_in(waited)
        core = _open.get(_address(comm))
        if core is not None and waited[0] > 1e9 * _longest:
            raise core.late(comm, waited[0] / 1e9)
    return 0


_open: weakref.WeakValueDictionary[int, Core] = weakref.WeakValueDictionary()
"""By their handles, the states of this process's communicators."""
_longest = 0.0
"""Seconds that a rank waits before it gives up; 0: it waits as MPI does."""


assert lib.hbm_slot_bytes() == tuning.SLOT_BYTES
lib.hbm_on_wait(lib.hbm_interrupted)
