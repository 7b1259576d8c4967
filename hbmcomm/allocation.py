"""Arrays made by a communicator, in its kind of memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from numpy.typing import ArrayLike, DTypeLike, NDArray

from hbmcomm.collectives.transports.transport import Transport
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.private.arrays import Shape, form


class Allocating(Transport):
    """Makes arrays of the supply that the communicator's transport has."""

    def empty(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of arbitrary contents in this communicator's kind; see `hbmcomm.empty`."""
        return self._supply().empty(shape, dtype)

    def zeros(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of zeros in this communicator's kind."""
        return self._supply().zeros(shape, dtype)

    def ones(self, shape: Shape, dtype: DTypeLike = "float64") -> NDArray[Any]:
        """An array of ones in this communicator's kind."""
        return self._supply().ones(shape, dtype)

    def full(self, shape: Shape, fill: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of one value in this communicator's kind."""
        return self._supply().full(shape, fill, dtype)

    def empty_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of arbitrary contents with the shape of `a`, and its dtype unless one is given.

        Where `a` lives does not count: the array is in this communicator's kind, in C order.
        """
        return self.empty(*form(a, dtype))

    def zeros_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of zeros with the shape of `a`, and its dtype unless one is given."""
        return self.zeros(*form(a, dtype))

    def ones_like(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of ones with the shape of `a`, and its dtype unless one is given."""
        return self.ones(*form(a, dtype))

    def asarray(self, a: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """The values of `a` in this communicator's kind; copied unless they are there already."""
        return self._supply().asarray(a, dtype)

    def numpy_memory(self) -> AbstractContextManager[Kind]:
        """Inside, every NumPy array of 64 KiB and more lives where this communicator's arrays do.

        Code written for NumPy then takes the paths of arena arrays unchanged. Smaller arrays stay
        NumPy's. Nests; holds for the calling thread alone; arrays outlive the context.

        Raises:
            KindUnavailable: The transport is not direct, and memkind cannot serve the kind.
        """
        return self._numpy_memory()
