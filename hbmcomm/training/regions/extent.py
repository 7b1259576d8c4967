"""Where regions are in an allocation: heads of two flags and a description each, then the data.

Offsets and bytes only; neither ranks nor how they share memory.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from hbmcomm import PeerError

_PAIR = 128  # bytes: CPUs fetch cache lines in pairs
_HEAD = 2 * _PAIR
_POSTED, _DESCRIPTION, _RELEASED = 0, 8, _PAIR
_MOST_DIMENSIONS = 8
_FORM = struct.Struct(f"16sQ{_MOST_DIMENSIONS}Q")  # dtype, number of dimensions, shape


class Extent(NamedTuple):
    """One region: offsets from the beginning of an allocation."""

    head: int
    data: int
    capacity: int
    """Bytes of data."""

    @property
    def posted(self) -> int:
        """The flag that the producer raises: how many tensors it has posted."""
        return self.head + _POSTED

    @property
    def released(self) -> int:
        """The flag that the consumer raises: how many of them it has released."""
        return self.head + _RELEASED

    @property
    def description(self) -> slice:
        """Type and shape of the tensor, next to the producer's flag."""
        begin = self.head + _DESCRIPTION
        return slice(begin, begin + _FORM.size)


def arrange(capacities: Mapping[str, int]) -> tuple[dict[str, Extent], int]:
    """The extent of each region, all heads before all data; and the bytes of the allocation.

    Args:
        capacities: The most bytes of data in each region.
    """
    extents: dict[str, Extent] = {}
    data = _HEAD * len(capacities)
    for number, (name, capacity) in enumerate(capacities.items()):
        extents[name] = Extent(_HEAD * number, data, capacity)
        data += -(-capacity // _PAIR) * _PAIR
    return extents, data


class Form(NamedTuple):
    """The type and shape of a tensor."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)

    def encoded(self) -> bytes:
        """The description in a head; `decoded` reads it."""
        sizes = self.shape + (0,) * (_MOST_DIMENSIONS - len(self.shape))
        return _FORM.pack(self.dtype.str.encode("ascii"), len(self.shape), *sizes)


def form_of(shape: int | Iterable[int], dtype: DTypeLike) -> Form:
    """A form that a description can hold.

    Raises:
        TypeError: The dtype has fields or Python objects.
        ValueError: Too many dimensions, or a negative size.
    """
    sizes = shape if isinstance(shape, Iterable) else (shape,)
    form = Form(np.dtype(dtype), tuple(map(operator.index, sizes)))  # NumPy's would overflow
    is_plain = np.dtype(form.dtype.str) == form.dtype and form.dtype.itemsize
    if form.dtype.hasobject or not is_plain:
        raise TypeError(f"dtype {form.dtype} cannot be in a region; take numbers, such as float32")
    if len(form.shape) > _MOST_DIMENSIONS or min(form.shape, default=0) < 0:
        raise ValueError(
            f"shape {form.shape} cannot be in a region; take at most {_MOST_DIMENSIONS} "
            "dimensions, none negative"
        )
    return form


def decoded(description: bytes, capacity: int) -> Form:
    """The form that another rank has described.

    Raises:
        PeerError: It is none, or it does not fit into the region.
    """
    dtype, dimensions, *sizes = _FORM.unpack(description)
    try:
        form = form_of(sizes[:dimensions], dtype.rstrip(b"\0").decode("ascii"))
    except (TypeError, ValueError) as error:
        raise PeerError(f"the producer of a region described no tensor: {error}") from None
    if form.nbytes > capacity:
        raise PeerError(
            f"the producer of a region of {capacity:,} bytes described a tensor of "
            f"{form.nbytes:,} bytes; both must use the same version of hbmcomm"
        )
    return form
