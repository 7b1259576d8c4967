"""Where the bytes of an entry of a datatype are in memory: MPI's type map, in the order of packing.

Read from how the datatype was made, so that it takes as long as the map, whatever the extent: of a
column of a matrix that is nearly the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray

from hbmcomm.transports import mpi_lock

Runs = NDArray[np.int64]
"""(runs, 2): the offset of each run of bytes from the address of the entry, and its length."""
Blocks = tuple[ArrayLike, ArrayLike]
"""Offsets of blocks in bytes, and the number of entries of the base in each, or one for all."""


def runs(datatype: MPI.Datatype) -> Runs:
    """The runs of bytes of one entry, in the order in which they are packed; none is empty."""
    if datatype.is_predefined:
        whole = datatype.size == datatype.extent
        return np.array([[0, datatype.size]], np.int64) if whole else _tried(datatype)
    base, combiner, how = datatype.decode()
    bases = how.get("datatypes", [base])
    try:
        if combiner == "STRUCT":
            parts = zip(bases, how["displacements"], how["blocklengths"], strict=True)
            every = [_repeated(part, [at], length) for part, at, length in parts]
            return _joined(np.concatenate([np.empty((0, 2), np.int64), *every]))
        if combiner in _BLOCKS:
            return _joined(_repeated(base, *_BLOCKS[combiner](how, base.extent)))
        return _tried(datatype)
    finally:
        for part in bases:
            if not part.is_predefined:
                part.Free()


def _subarray(how: Mapping[str, Any], extent: int) -> Blocks:
    """A block for each row of the part, which is in C's order or in Fortran's."""
    dimensions = list(zip(how["sizes"], how["subsizes"], how["starts"], strict=True))
    if how["order"] != MPI.ORDER_F:
        dimensions.reverse()
    (size, length, start), *outer = dimensions
    rows, stride = np.array([start * extent], np.int64), size * extent
    for size, count, start in outer:
        rows = np.add.outer((start + np.arange(count)) * stride, rows).ravel()
        stride *= size
    return rows, length


_BLOCKS: dict[str, Callable[[Mapping[str, Any], int], Blocks]] = {
    "DUP": lambda how, extent: ([0], 1),
    "RESIZED": lambda how, extent: ([0], 1),
    "CONTIGUOUS": lambda how, extent: ([0], how["count"]),
    "VECTOR": lambda how, extent: (
        np.arange(how["count"]) * how["stride"] * extent,
        how["blocklength"],
    ),
    "HVECTOR": lambda how, extent: (np.arange(how["count"]) * how["stride"], how["blocklength"]),
    "INDEXED": lambda how, extent: (_scaled(how, extent), how["blocklengths"]),
    "HINDEXED": lambda how, extent: (how["displacements"], how["blocklengths"]),
    "INDEXED_BLOCK": lambda how, extent: (_scaled(how, extent), how["blocklength"]),
    "HINDEXED_BLOCK": lambda how, extent: (how["displacements"], how["blocklength"]),
    "SUBARRAY": _subarray,
}
"""By MPI's name for how a datatype was made: from its arguments and the extent of its base."""


def _scaled(how: Mapping[str, Any], extent: int) -> ArrayLike:
    return np.array(how["displacements"], np.int64) * extent


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
