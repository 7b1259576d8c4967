"""The arrays that a communicator creates, in its kind of memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.memory.arrays import Shape
from hbmcomm.memory.kinds import Kind
from hbmcomm.transports.transport import Transport


class Allocating(Transport):
    """Creates arrays in the memory that the communicator's transport uses."""

    def empty(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of arbitrary contents in this communicator's kind; see `hbmcomm.empty`."""
        return self._array_factory().empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of zeros in this communicator's kind."""
        return self._array_factory().zeros(shape, dtype)

    def ones(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of ones in this communicator's kind."""
        return self._array_factory().ones(shape, dtype)

    def full(self, shape: Shape, fill: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of one value in this communicator's kind."""
        return self._array_factory().full(shape, fill, dtype)

    def empty_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of arbitrary contents with the shape of `a`, and its dtype unless one is given.

        The array is in this communicator's kind, wherever `a` is. It keeps the order of `a` in
        memory, as that of numpy.empty_like does: collectives move memory, whatever its order.
        """
        return self._array_factory().empty_like(a, dtype)

    def zeros_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of zeros with the shape of `a`, and its dtype unless one is given."""
        return self._array_factory().zeros_like(a, dtype)

    def ones_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of ones with the shape of `a`, and its dtype unless one is given."""
        return self._array_factory().ones_like(a, dtype)

    def asarray(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """`a` itself where it is in this communicator's kind already, else a copy there."""
        return self._array_factory().asarray(a, dtype)

    def numpy_memory(self) -> AbstractContextManager[Kind]:
        """Inside, every new NumPy array of 64 KiB and more is in this communicator's memory.

        Unchanged NumPy code then gets the speed of arena arrays. Smaller arrays stay in NumPy's
        memory. Contexts nest and apply to the calling thread only; arrays outlive them.

        Raises:
            KindUnavailable: The transport is not direct, and memkind cannot provide the kind.
        """
        return self._numpy_memory()
