"""NumPy arrays in a kind of memory: empty, zeros, full, asarray.

Ordinary ndarrays, 64-byte aligned, in C order; the block behind them is freed when the last view
goes. Knows NumPy's shapes and dtypes; where the memory comes from is `blocks`' affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.memory.blocks import Block, Source, allocate
from hbmcomm.memory.kinds import Kind, default_kind, resolve

Shape = int | Iterable[int]


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
        OutOfMemory: The kind is strict and its nodes have less than that free. Nothing falls back.
        TypeError: The dtype holds Python objects.
        ValueError: Unknown kind, or a shape that NumPy would refuse.
    """
    return _array(shape, dtype, *_wanted(kind, nodes))


def zeros(
    shape: Shape,
    dtype: DTypeLike = "float64",
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array of zeros; arguments and errors are those of `empty`."""
    array = _array(shape, dtype, *_wanted(kind, nodes))
    block = _block(array)
    if block is not None and block.source != "mmap":  # a fresh mapping is zero already
        np.asarray(block).fill(0)
    return array


def full(
    shape: Shape,
    fill: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """An array filled with `fill`, of whose dtype it is unless one is given; else like `empty`."""
    array = _array(shape, np.asarray(fill).dtype if dtype is None else dtype, *_wanted(kind, nodes))
    np.copyto(array, fill, casting="unsafe")
    return array


def asarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    kind: str | None = None,
    nodes: Iterable[int] | None = None,
) -> NDArray[Any]:
    """`a` in memory of a kind: itself where it is there already, else a copy; else like `empty`."""
    given = np.asarray(a)
    wanted, pinned = _wanted(kind, nodes)
    target = given.dtype if dtype is None else np.dtype(dtype)
    block = _block(given)
    if block is not None and given.dtype == target and _same_place(block.kind, wanted):
        return given
    array = _array(given.shape, target, wanted, pinned)
    np.copyto(array, given, casting="unsafe")
    return array


def source(array: NDArray[Any]) -> Source | None:
    """Who gave the memory of an array: "memkind", "mmap" (and mbind), or None for NumPy's own."""
    block = _block(array)
    return None if block is None else block.source


def _wanted(kind: str | None, nodes: Iterable[int] | None) -> tuple[Kind, bool]:
    return resolve(kind or default_kind(), nodes), nodes is not None


def _array(shape: Shape, dtype: DTypeLike, kind: Kind, pinned: bool) -> NDArray[Any]:
    # One element, spread over the shape, lets NumPy judge shape and dtype before memory is taken.
    model = np.broadcast_to(np.empty((), np.dtype(dtype).base), _dimensions(shape, dtype))
    if model.dtype.hasobject:
        raise TypeError(
            f"dtype {model.dtype} holds Python objects, which live in Python's own heap; "
            "take a fixed-size dtype"
        )
    block = allocate(kind, model.size * model.itemsize, pinned)
    return np.ndarray(model.shape, model.dtype, buffer=np.asarray(block))


def _dimensions(shape: Shape, dtype: DTypeLike) -> tuple[int, ...]:
    outer = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return (*outer, *np.dtype(dtype).shape)


def _block(array: NDArray[Any]) -> Block | None:
    """The block that an array is a view of, through however many views."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner if isinstance(owner, Block) else None


def _same_place(there: Kind, wanted: Kind) -> bool:
    return (there.nodes, there.policy) == (wanted.nodes, wanted.policy)
