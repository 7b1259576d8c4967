"""One way to carry tensors from rank 0, their producer, to rank 1, their consumer."""

from collections.abc import Sequence

import numpy as np

from experiments.measure.operations import Array


class Line:
    """A list of tensors, pushed again and again; every method but `close` is one rank's own.

    Attributes:
        copied: bytes that this line has copied on this rank, as far as its own calls tell.
    """

    def __init__(self, tensors: Sequence[Array] = ()) -> None:
        """`tensors`: arrays of this rank's own."""
        self.copied, self._tensors = 0, tensors

    def _counted(self, data: bytes) -> bytes:
        """Count bytes that were just copied, and return them."""
        self.copied += len(data)
        return data

    def out(self, number: int) -> Array:
        """On the producer: where a tensor is computed into."""
        return self._tensors[number]

    def send(self, number: int) -> None:
        """On the producer: push it."""
        raise NotImplementedError

    def finish(self) -> None:
        """On the producer: wait for what was pushed, as far as the consumer need not be done."""

    def receive(self, number: int) -> Array:
        """On the consumer: the tensor, to be read; it waits for it."""
        raise NotImplementedError

    def release(self, number: int) -> None:
        """On the consumer: it has been read."""

    def close(self) -> None:
        """Free everything; a collective."""


def zeros(sizes: Sequence[int]) -> list[Array]:
    """Tensors of these lengths."""
    return [np.zeros(size, "float32") for size in sizes]
