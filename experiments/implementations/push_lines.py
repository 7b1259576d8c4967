"""Lines that carry tensors from rank 0, their producer, to rank 1, their consumer.

Over this library's remote regions, packed messages of MPI, and torch's gloo; rpc_lines.py has those
over gRPC.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.measure.operations import Array

_HEAD = 128  # bytes of a message before its data: what an RPC says about a tensor


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


class RegionLine(Line):
    """Tensors of `sizes` elements are computed in the memory where they are read."""

    def __init__(self, comm: hbmcomm.Communicator, sizes: Sequence[int]) -> None:
        library: Any = importlib.import_module("hbmcomm.training.regions")
        super().__init__()
        self._sizes = sizes
        self._regions = library.Regions(comm)
        if comm.rank:
            capacities = {str(number): 4 * size for number, size in enumerate(sizes)}
            ends = self._regions.allocate(0, capacities)
        else:
            ends = self._regions.open(1)
        self._ends: list[Any] = list(ends.values())

    def out(self, number: int) -> Array:
        array: Array = self._ends[number].array(self._sizes[number])
        return array

    def send(self, number: int) -> None:
        self._ends[number].post()

    def finish(self) -> None:
        self.copied = sum(end.copied_bytes for end in self._ends)

    def receive(self, number: int) -> Array:
        array: Array = self._ends[number].wait()
        return array

    def release(self, number: int) -> None:
        self._ends[number].release()

    def close(self) -> None:
        self._regions.close()


class PackedLine(Line):
    """A tensor and its head are packed into a message, sent, received and unpacked, as by RPC."""

    def __init__(self, comm: MPI.Intracomm, sizes: Sequence[int]) -> None:
        super().__init__(zeros(sizes))
        self._comm = comm
        self._message = np.zeros(_HEAD + 4 * max(sizes), np.uint8)

    def send(self, number: int) -> None:
        message, data = self._packed(number)
        data[:] = self._tensors[number]
        self.copied += data.nbytes
        self._comm.Send(message, 1)

    def receive(self, number: int) -> Array:
        message, data = self._packed(number)
        self._comm.Recv(message, 0)
        self._tensors[number][:] = data
        self.copied += data.nbytes
        return self._tensors[number]

    def close(self) -> None:
        self._comm.Free()

    def _packed(self, number: int) -> tuple[Array, Array]:
        message = self._message[: _HEAD + self._tensors[number].nbytes]
        return message, message[_HEAD:].view("float32")


class GlooLine(Line):
    """send and recv of torch.distributed, over its default group, which serves other lines too."""

    def __init__(self, sizes: Sequence[int]) -> None:
        import torch

        super().__init__(zeros(sizes))
        self._dist = torch.distributed
        self._seen = [torch.from_numpy(tensor) for tensor in self._tensors]

    def send(self, number: int) -> None:
        self._dist.send(self._seen[number], 1)

    def receive(self, number: int) -> Array:
        self._dist.recv(self._seen[number], 0)
        return self._tensors[number]
