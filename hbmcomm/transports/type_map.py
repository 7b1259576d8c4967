"""Where the bytes of an entry of a datatype are in memory: MPI's type map, in the order of packing.

Read from how the datatype was made, so that it takes as long as the map, whatever the extent: of a
column of a matrix that is nearly the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray

from hbmcomm.transports import mpi_lock
from hbmcomm.transports.mpi_lock import Made

Runs = NDArray[np.int64]
"""(runs, 2): the offset of each run of bytes from the address of the entry, and its length."""
Blocks = tuple[ArrayLike, ArrayLike]
"""Offsets of blocks in bytes, and the number of entries of the base in each, or one for all."""


def runs(datatype: MPI.Datatype) -> Runs:
    """The runs of bytes of one entry, in the order in which they are packed; none is empty."""
    if datatype.is_predefined:
        whole = datatype.size == datatype.extent
        return np.array([[0, datatype.size]], np.int64) if whole else _tried(datatype)
    with mpi_lock.made(datatype) as made:
        if made.combiner == MPI.COMBINER_STRUCT:
            blocks = zip(made.bases, *_each_long(made.numbers), strict=True)
            every = [_repeated(base, [offset], length) for base, offset, length in blocks]
            return _joined(np.concatenate([np.empty((0, 2), np.int64), *every]))
        if made.combiner in _BLOCKS:
            (base,) = made.bases
            return _joined(_repeated(base, *_BLOCKS[made.combiner](made, base.extent)))
        return _tried(datatype)


def _each_long(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and lengths from the number of blocks, all lengths, and all offsets."""
    count = numbers[0]
    return numbers[count + 1 :], numbers[1 : count + 1]


def _indexed(made: Made, extent: int) -> Blocks:
    offsets, lengths = _each_long(made.numbers)
    return offsets * extent, lengths


def _subarray(made: Made, extent: int) -> Blocks:
    """A block for each row of the part."""
    count, order = made.integers[0], made.integers[-1]
    whole = len(made.integers) > 2  # not one with large counts
    numbers = made.integers[1:-1] if whole else made.numbers[2:]
    dimensions = list(zip(*numbers.reshape(3, count), strict=True))
    if order != MPI.ORDER_F:
        dimensions.reverse()
    (size, length, start), *outer = dimensions
    rows, stride = np.array([start * extent], np.int64), size * extent
    for size, count, start in outer:
        rows = np.add.outer((start + np.arange(count)) * stride, rows).ravel()
        stride *= size
    return rows, length


_BLOCKS: dict[int, Callable[[Made, int], Blocks]] = {
    MPI.COMBINER_DUP: lambda made, extent: ([0], 1),
    MPI.COMBINER_RESIZED: lambda made, extent: ([0], 1),
    MPI.COMBINER_CONTIGUOUS: lambda made, extent: ([0], made.numbers[0]),
    MPI.COMBINER_VECTOR: lambda made, extent: (_strided(made) * extent, made.numbers[1]),
    MPI.COMBINER_HVECTOR: lambda made, extent: (_strided(made), made.numbers[1]),
    MPI.COMBINER_INDEXED: _indexed,
    MPI.COMBINER_HINDEXED: lambda made, extent: _each_long(made.numbers),
    MPI.COMBINER_INDEXED_BLOCK: lambda made, extent: (made.numbers[2:] * extent, made.numbers[1]),
    MPI.COMBINER_HINDEXED_BLOCK: lambda made, extent: (made.numbers[2:], made.numbers[1]),
    MPI.COMBINER_SUBARRAY: _subarray,
}
"""By what made a datatype: its blocks, from the arguments and the extent of its base."""


def _strided(made: Made) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = np.arange(made.numbers[0]) * made.numbers[2]
    return offsets


def _repeated(base: MPI.Datatype, offsets: ArrayLike, lengths: ArrayLike) -> Runs:
    """The runs of blocks of a datatype."""
    inner, extent = runs(base), base.extent
    at = np.array(offsets, np.int64)
    count = np.broadcast_to(np.array(lengths, np.int64), at.shape)
    if len(inner) == 1 and inner[0, 1] == extent:  # each block is one run
        every = np.stack([at + inner[0, 0], count * extent], axis=1)
        return every[count > 0]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    entries = np.repeat(at, count) + within * extent
    every = np.empty((len(entries), len(inner), 2), np.int64)
    every[:, :, 0] = entries[:, np.newaxis] + inner[:, 0]
    every[:, :, 1] = inner[:, 1]
    return every.reshape(-1, 2)


def _joined(every: Runs) -> Runs:
    """Runs of which none begins where the one before it ends."""
    if len(every) < 2:
        return every
    first = np.concatenate([[True], every[1:, 0] != every[:-1].sum(axis=1)]).nonzero()[0]
    return np.stack([every[first, 0], np.add.reduceat(every[:, 1], first)], axis=1)


def _tried(datatype: MPI.Datatype) -> Runs:
    """The runs of a datatype that is not made of blocks, such as a part of a distributed array.

    MPI packs entries that contain the offsets of their bytes, one base-256 digit at a time. It may
    leave out the padding of a long double: such bytes follow the one before.
    """
    if not datatype.is_predefined:
        datatype.Commit()  # a base need not be
    lower, extent = datatype.Get_true_extent()
    before = max(-lower, 0)  # bytes of the entry in front of its address
    span = np.arange(before + max(lower + extent, datatype.extent), dtype=np.int64)
    offsets = np.zeros(datatype.size, np.int64)
    is_packed = np.ones(datatype.size, bool)
    for shift in range(0, int(span.size).bit_length(), 8):
        digits = (span >> shift & 0xFF).astype(np.uint8)
        one: Any = MPI.buffer.fromaddress(digits.ctypes.data + before, datatype.extent)
        packed, again = _filled(datatype, 0), _filled(datatype, 0xFF)
        for buffer in (packed, again):
            datatype.Pack(one, buffer, 0, MPI.COMM_SELF)
        offsets |= packed[: offsets.size].astype(np.int64) << shift
        is_packed &= (packed == again)[: offsets.size]
    index = np.arange(offsets.size)
    last = np.maximum.accumulate(np.where(is_packed, index, 0))
    known = offsets[last] + index - last - before
    return _joined(np.stack([known, np.ones_like(known)], axis=1))


def _filled(datatype: MPI.Datatype, value: int) -> NDArray[np.uint8]:
    """A buffer for one packed entry."""
    return np.full(mpi_lock.pack_size(datatype, 1), value, np.uint8)
