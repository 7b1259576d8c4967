"""Arrays of other ranks in place, and one-sided flags, in the memory that ranks share.

What MPI's shared windows give, for arena arrays: `share` names an array so that another rank can
`attach` it; `flags` are counters that one rank raises and others wait for.
"""

from __future__ import annotations

import operator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm.errors import ArenaUnavailable, PeerError
from hbmcomm.memory.arena import MappedBytes, RankMemory
from hbmcomm.transports.native import Core, lib
from hbmcomm.transports.transport import Neighbours, Transport

Array = NDArray[Any]
_WORD = 8  # bytes of a flag
_raise, _await, _test = lib.hbm_raise_flags, lib.hbm_await_flag, lib.hbm_test_flag
_integer = operator.index  # sums of NumPy's integers overflow


class SharedArray(NamedTuple):
    """The name of an arena array, for `Communicator.attach` on other ranks; it can be pickled."""

    rank: int
    """Its owner, in the communicator that shared it."""
    offset: int
    """Bytes from the beginning of the owner's arrays."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


class Flags:
    """Counters in memory that ranks share: one rank raises them, others wait; see `flags`.

    What the writer has written before it raises a flag is there for a rank whose wait has ended.
    As with collectives, one thread at a time may use the flags of a communicator.
    """

    def __init__(
        self, comm: Transport, core: Core, rank: int, writer: int, counters: Array
    ) -> None:
        """`rank`: of the writer; `writer`: its number in the core."""
        self._comm, self._core, self._rank, self._writer = comm, core, rank, writer
        self._is_writer = rank == comm.rank
        self._counters = counters  # keeps the memory
        self._handle, self._size = core.handle, counters.size
        self._address: int = counters.__array_interface__["data"][0]

    def __len__(self) -> int:
        return self._size

    def raise_to(self, value: int, first: int = 0, count: int = 1) -> None:
        """Set `count` flags from number `first` on, and wake ranks that wait for them.

        Only the writer may call it, and a value must not be below the one before.

        Raises:
            IndexError: There are fewer flags.
            PeerError: A rank died or left before; the flags are as they were.
            ValueError: Another rank is the writer.
        """
        if not self._is_writer:
            raise ValueError(
                f"rank {self._rank} raises these flags, as flags() was asked; this is rank "
                f"{self._comm.rank}"
            )
        first, count = _integer(first), _integer(count)
        if first < 0 or count < 0 or first + count > self._size:
            raise IndexError(f"flags {first} to {first + count - 1}: there are {self._size}")
        status = _raise(self._handle, self._address + _WORD * first, count, value)
        if status:
            raise self._comm._reported(self._core.error(status))

    def wait(self, value: int, index: int = 0) -> None:
        """Wait until a flag is at least `value`.

        Raises:
            IndexError: There is no such flag.
            PeerError: The writer died or left, or a rank failed, before it raised the flag.
        """
        index = _integer(index)
        if not 0 <= index < self._size:
            raise IndexError(f"flag {index}: there are {self._size}")
        status = _await(self._handle, self._writer, self._address + _WORD * index, value)
        if status:
            raise self._comm._reported(self._core.error(status))

    def test(self, value: int, index: int = 0) -> bool:
        """Whether a flag is at least `value`; errors as for `wait`."""
        index = _integer(index)
        if not 0 <= index < self._size:
            raise IndexError(f"flag {index}: there are {self._size}")
        status = _test(self._handle, self._writer, self._address + _WORD * index, value)
        if status not in (lib.HBM_OK, lib.HBM_PENDING):
            raise self._comm._reported(self._core.error(status))
        return bool(status == lib.HBM_OK)


class Sharing(Transport):
    """Gives ranks each other's arrays, where they share memory."""

    @property
    def arena_ranks(self) -> tuple[int, ...]:
        """The ranks whose arrays this one can attach, itself included: with transport direct all
        ranks, with hierarchical those of its host, else itself alone."""
        near = self._neighbours()
        return (self.rank,) if near is None else near.ranks

    def share(self, array: Array) -> SharedArray:
        """Name an array of this rank, so that other ranks can attach it; not collective.

        Send the name by any message: `comm.allgather(comm.share(x))`. Other ranks may write into
        the array until they free the communicator, so its memory is not used again before all ranks
        have freed it or died, even when the array is gone.

        Args:
            array: In this communicator's arena, such as one of `empty`, and in C order.

        Raises:
            ArenaUnavailable: This transport shares no memory.
            ValueError: The array is elsewhere, or not contiguous.
        """
        near = self._sharers()
        address, nbytes = _memory_of(array), array.nbytes
        own = near.arena.ranks[near.ranks.index(self.rank)]
        offset = address - own.arrays if nbytes else 0
        if not 0 <= offset <= own.array_bytes - nbytes:
            raise ValueError(
                "share: the array is not in this rank's arena; make it with this communicator's "
                "empty(), or copy it there with asarray()"
            )
        near.arena.keep(address, nbytes)
        return SharedArray(self.rank, offset, array.shape, array.dtype)

    def attach(self, shared: SharedArray) -> Array:
        """A view of an array that another rank has shared: its memory, not a copy. Not collective.

        The view is valid until either rank frees the communicator. Ranks order their accesses
        themselves, by flags or by a collective.

        Args:
            shared: What `share` returned on its owner, in this communicator.

        Raises:
            ArenaUnavailable: This rank shares no memory with the owner.
            PeerError: The owner died or left, or the array is not within its memory.
            MPI.Exception: There is no such rank.
            TypeError: `shared` is no SharedArray, such as None on a rank that got no message.
        """
        if not isinstance(shared, SharedArray):
            raise TypeError(
                f"attach: found {type(shared).__name__}; give what share() returned on the owner, "
                "as comm.allgather(comm.share(array)) brings it"
            )
        near = self._sharers()
        rank, offset, shape, dtype = shared
        number = self._number_of(near, rank)
        owner, nbytes = near.arena.ranks[number], shared.nbytes
        if dtype.hasobject or min(shape, default=0) < 0:
            raise ValueError(f"attach: {dtype} of shape {shape} is no array of an arena")
        if not 0 <= offset <= owner.array_bytes - nbytes:
            raise self._reported(
                PeerError(f"rank {rank} named memory that is not its own; do not use its arrays")
            )
        if rank != self.rank and (status := lib.hbm_check_rank(near.core.handle, number)):
            raise self._reported(near.core.error(status))
        memory = np.asarray(MappedBytes(near.arena, owner.arrays + offset, nbytes))
        return np.ndarray(shape, dtype, buffer=memory)

    def flags(self, counters: Array, writer: int | None = None) -> Flags:
        """Flags in an array that ranks share; each rank that raises or awaits them calls this.

        Args:
            counters: uint64, in C order, in this rank's arena or attached; 0 before the first use.
                Flags that different ranks raise should be 128 bytes apart.
            writer: The one rank that raises them; left out: this rank.

        Raises:
            ArenaUnavailable: This rank shares no memory with the writer.
            MPI.Exception: There is no such rank.
            TypeError: `writer` is no integer.
            ValueError: `counters` is another array.
        """
        near = self._sharers()
        address = _memory_of(counters)
        is_shared = any(_holds(memory, address, counters.nbytes) for memory in near.arena.ranks)
        if counters.dtype != np.uint64 or address % _WORD or not is_shared:
            raise ValueError(
                f"flags: found {counters.dtype} at {address:#x}; give uint64 in memory that ranks "
                "share: an array of empty(), or one that this rank has attached"
            )
        rank = self.rank if writer is None else _integer(writer)
        return Flags(self, near.core, rank, self._number_of(near, rank), counters)

    def _sharers(self) -> Neighbours:
        near = self._neighbours()
        if near is not None:
            return near
        if self == MPI.COMM_NULL:
            raise MPI.Exception(MPI.ERR_COMM)
        raise self._reported(
            ArenaUnavailable(
                f"transport {self.transport} shares no memory between ranks; take transport "
                "'direct', or 'hierarchical' for ranks on several hosts"
            )
        )

    def _number_of(self, near: Neighbours, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise MPI.Exception(MPI.ERR_RANK)
        if rank not in near.ranks:
            raise self._reported(
                ArenaUnavailable(
                    f"rank {rank} shares no memory with rank {self.rank}: it is on another host; "
                    "use messages"
                )
            )
        return near.ranks.index(rank)


def _memory_of(array: Array) -> int:
    """The address of an array that is one run of bytes."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"found {type(array).__name__}; give a NumPy array")
    if not array.flags.c_contiguous:
        raise ValueError(
            f"found strides {array.strides} for shape {array.shape}; give an array in C order"
        )
    return int(array.__array_interface__["data"][0])


def _holds(memory: RankMemory, address: int, nbytes: int) -> bool:
    return 0 <= address - memory.arrays <= memory.array_bytes - nbytes
