"""NumPy arrays in a kind of memory: empty, zeros, ones, full, *_like, asarray.

Ordinary ndarrays, 64-byte aligned; their block is freed with the last view. They are in C order;
arrays like another, and copies, keep its order in memory as NumPy's do (order="K"). Knows NumPy's
shapes, dtypes and strides; `blocks` allocates the memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.memory import blocks
from hbmcomm.memory.blocks import Block, Source, allocate
from hbmcomm.memory.kinds import Kind, default_kind, resolve
from hbmcomm.memory.numpy_memory import allocated_by_memkind

Shape = int | Iterable[int]


class NumpyPiece(NamedTuple):
    """Shared memory of an array that NumPy itself allocated (numpy_memory)."""

    kind: Kind
    address: int
    source: Source


@dataclass(frozen=True)
class ArrayFactory:
    """Creates arrays of a kind; `allocate` returns a block of so many bytes."""

    kind: Kind
    allocate: Callable[[int], Block]
    holds: Callable[[Any], bool]
    """Whether a `Block` or a `NumpyPiece` is in the memory that `allocate` uses."""

    def empty(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        # One element, broadcast to the shape: NumPy checks both before memory is allocated.
        model = np.broadcast_to(np.empty((), np.dtype(dtype).base), _dimensions(shape, dtype))
        if model.dtype.hasobject:
            raise TypeError(
                f"dtype {model.dtype} holds Python objects, which stay in Python's own heap; "
                "take a fixed-size dtype"
            )
        block = self.allocate(model.size * model.itemsize)
        return np.ndarray(model.shape, model.dtype, buffer=np.asarray(block))

    def empty_like(self, a: ArrayLike, dtype: DTypeLike | None) -> NDArray[Any]:
        like = np.asanyarray(a)
        target = like.dtype if dtype is None else np.dtype(dtype)
        shape = _dimensions(like.shape, target)
        order = _axes_in_memory(like, len(shape))
        array = self.empty([shape[axis] for axis in order], target.base)
        return array.transpose(np.argsort(order)) if order != sorted(order) else array

    def zeros(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        return _zeroed(self.empty(shape, dtype))

    def zeros_like(self, a: ArrayLike, dtype: DTypeLike | None) -> NDArray[Any]:
        return _zeroed(self.empty_like(a, dtype))

    def ones(self, shape: Shape, dtype: DTypeLike) -> NDArray[Any]:
        return self.full(shape, 1, np.dtype(dtype))

    def ones_like(self, a: ArrayLike, dtype: DTypeLike | None) -> NDArray[Any]:
        array = self.empty_like(a, dtype)
        np.copyto(array, 1, casting="unsafe")
        return array

    def full(self, shape: Shape, fill: ArrayLike, dtype: DTypeLike | None) -> NDArray[Any]:
        array = self.empty(shape, np.asarray(fill).dtype if dtype is None else dtype)
        np.copyto(array, fill, casting="unsafe")
        return array

    def asarray(self, a: ArrayLike, dtype: DTypeLike | None) -> NDArray[Any]:
        is_cast = dtype is not None and isinstance(a, np.ndarray)
        if is_cast and not _depends_on_values(np.dtype(dtype)):
            given, target = np.asarray(a), np.dtype(dtype)
        else:  # in one step: objects of Python lose digits in a dtype between
            given = np.asarray(a, dtype)
            target = given.dtype
        block = _block(given)
        if block is not None and given.dtype == target and self.holds(block):
            return given
        array = self.empty_like(given, target)
        np.copyto(array, given, casting="unsafe")
        return array


def private_factory(kind: str | None = None, nodes: Iterable[int] | None = None) -> ArrayFactory:
    """The factory of arrays private to this process; arguments and errors as for `empty`."""
    resolved = resolve(default_kind() if kind is None else kind, nodes)
    pinned = nodes is not None

    def holds(block: Block | NumpyPiece) -> bool:
        return (block.kind.nodes, block.kind.policy) == (resolved.nodes, resolved.policy)

    return ArrayFactory(resolved, lambda nbytes: allocate(resolved, nbytes, pinned), holds)


def empty(
    shape: Shape,
    dtype: DTypeLike = "float64",
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of arbitrary contents in memory of a kind.

    Args:
        shape: As for numpy.empty.
        dtype: Any but those that hold Python objects.
        kind: A name of `hbmcomm.KINDS`; left out: `hbmcomm.default_kind()`.
        nodes: Bind strictly to these NUMA nodes of the kind instead of the nearest.

    Raises:
        KindUnavailable: This machine or process has no such memory.
        OutOfMemory: The kind is strict and its nodes have less free. There is no fallback.
        TypeError: The dtype holds Python objects.
        ValueError: Unknown kind, or a shape that NumPy would refuse.
    """
    return private_factory(kind, nodes).empty(shape, dtype)


def zeros(
    shape: Shape,
    dtype: DTypeLike = "float64",
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of zeros; arguments and errors as for `empty`."""
    return private_factory(kind, nodes).zeros(shape, dtype)


def ones(
    shape: Shape,
    dtype: DTypeLike = "float64",
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of ones; arguments and errors as for `empty`."""
    return private_factory(kind, nodes).ones(shape, dtype)


def full(
    shape: Shape,
    fill: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array filled with `fill`, and of its dtype if none is given; else as for `empty`."""
    return private_factory(kind, nodes).full(shape, fill, dtype)


def empty_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array with the shape of `a`, its order in memory, and its dtype if none is given.

    All else is as for `empty`; the order is that of numpy.empty_like (order="K").
    """
    return private_factory(kind, nodes).empty_like(a, dtype)


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of zeros; arguments, order in memory and errors as for `empty_like`."""
    return private_factory(kind, nodes).zeros_like(a, dtype)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of ones; arguments, order in memory and errors as for `empty_like`."""
    return private_factory(kind, nodes).ones_like(a, dtype)


def asarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """`a` itself where it is in memory of the kind already, else a copy that keeps its order in
    memory; see `empty`."""
    return private_factory(kind, nodes).asarray(a, dtype)


def source(array: NDArray[Any]) -> Source | None:
    """What allocated the memory of an array or a view: "memkind", "mmap" (and mbind), "arena"
    (memory that the ranks of a node share), or None: NumPy. Also for arrays of `numpy_memory`.

    Raises TypeError where it is no array of NumPy.
    """
    require_array(array)
    block = _block(array)
    if block is not None:
        return block.source
    base = owner_of(array)
    return "memkind" if isinstance(base, np.ndarray) and allocated_by_memkind(base) else None


def require_array(value: object) -> None:
    """Raise TypeError where a value is no array of NumPy, whose memory could be looked up."""
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"needs an array of NumPy, not {type(value).__name__}; of an object that shares its "
            "memory, numpy.asarray(object) gives one"
        )


def owner_of(array: NDArray[Any]) -> object:
    """The array at the end of a chain of views, or the owner of its memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else array.base


def _dimensions(shape: Shape, dtype: DTypeLike) -> tuple[int, ...]:
    whole = shape[()] if isinstance(shape, np.ndarray) else shape  # of a 0-d array: its number
    outer = whole if isinstance(whole, Iterable) else (whole,)
    return (*map(operator.index, outer), *np.dtype(dtype).shape)


def _depends_on_values(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy completes a dtype by the values of an array: a length, a unit, or a shape."""
    has_unit = dtype.kind not in "mM" or np.datetime_data(dtype)[0] != "generic"
    return bool(not dtype.itemsize or not has_unit or dtype.shape)


def _axes_in_memory(like: NDArray[Any], dimensions: int) -> list[int]:
    """The axes of an array like another, from the slowest in memory to the fastest.

    As numpy.empty_like orders them (order="K"): C or Fortran order is kept, other axes are sorted
    by their strides. Further dimensions, of a dtype with a shape, come last but in Fortran order.
    """
    if like.flags.f_contiguous and not like.flags.c_contiguous:
        return list(reversed(range(dimensions)))
    outer = list(range(like.ndim))
    if not like.flags.c_contiguous:
        outer.sort(key=lambda axis: -abs(like.strides[axis]))
    return [*outer, *range(like.ndim, dimensions)]


def _zeroed(array: NDArray[Any]) -> NDArray[Any]:
    """An array that was just made, once it is zero."""
    block = _block(array)
    if block is not None and block.source != "mmap":  # a fresh mapping is zero already
        np.asarray(block).fill(0)
    return array


def _block(array: NDArray[Any]) -> Block | NumpyPiece | None:
    """The memory that an array is a view of, through however many views."""
    base = owner_of(array)
    if not isinstance(base, np.ndarray) or not base.flags.owndata:
        return base if isinstance(base, Block) else None
    address = int(base.__array_interface__["data"][0])
    region = blocks.find(address)
    return None if region is None else NumpyPiece(region.kind, address, "arena")
