"""One way to carry tensors from rank 0, their producer, to rank 1, their consumer."""

from typing import Protocol

import numpy as np

from experiments.programs.measure.operations import Array


class Copies:
    """Counts the bytes that a line copies by calls of its own."""

    def __init__(self) -> None:
        self.nbytes = 0

    def array(self, to: Array, values: Array) -> None:
        """Copy an array."""
        np.copyto(to, values)
        self.nbytes += values.nbytes

    def made(self, data: bytes) -> bytes:
        """Bytes that have just been made from others."""
        self.nbytes += len(data)
        return data


class Line(Protocol):
    """A list of tensors, pushed again and again; every method but `close` is one rank's own.

    Attributes:
        copies: what this line has copied on this rank, as far as its own calls tell.
        transfers: how many times the MPI, gRPC's core or the kernel writes each byte besides.
    """

    copies: Copies
    transfers: int

    def out(self, number: int) -> Array:
        """On the producer: where a tensor is computed into."""

    def send(self, number: int) -> None:
        """On the producer: push it."""

    def finish(self) -> None:
        """On the producer: wait for what was pushed, as far as the consumer need not be done."""

    def receive(self, number: int) -> Array:
        """On the consumer: the tensor, to be read; it waits for it."""

    def release(self, number: int) -> None:
        """On the consumer: it has been read."""

    def close(self) -> None:
        """Free everything; a collective."""
