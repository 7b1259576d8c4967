"""How ready tensors become few calls of Allreduce, and the calls themselves.

Neighbours in a block are reduced where they are. Other small tensors are packed into the fusion
buffer and unpacked afterwards. Knows no names of tensors and no negotiation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from hbmcomm import Communicator, source
from hbmcomm.training.fusion.negotiation import Known, Place, Signature, TensorMismatch

Array = NDArray[Any]


ALIGNMENT = 64  # bytes: tensors of a block begin at cache lines
LOOSE = Place(-1, 0, 0)
"""The place of a tensor that is in memory which ranks share, but in no block."""


class Piece(NamedTuple):
    """Elements of a tensor, and where they are in the fusion buffer."""

    number: int
    start: int
    stop: int
    offset: int
    """In bytes."""


class Batch(NamedTuple):
    """What one Allreduce serves: packed pieces, a run of neighbours in a block, or a tensor."""

    dtype: str
    nbytes: int
    complete: tuple[int, ...]
    """The numbers of the tensors that are reduced after it."""
    place: Place | None = None
    """Of a run; LOOSE: the one tensor that is complete after it."""
    pieces: tuple[Piece, ...] = ()
    """What is packed."""


class Plan(NamedTuple):
    """What is done for tensors that are ready on all ranks."""

    batches: list[Batch]
    mismatches: dict[str, TensorMismatch]
    """By the names of tensors that ranks do not agree on."""


def planned(ready: Iterable[Known], fusion_bytes: int, splits: bool) -> Plan:
    """The plan for some tensors, the same on every rank."""
    agreed: list[tuple[int, Signature]] = []
    mismatches: dict[str, TensorMismatch] = {}
    for known in ready:
        try:
            agreed.append((known.number, known.agreed()))
        except TensorMismatch as mismatch:
            mismatches[known.name] = mismatch
    return Plan(batches(agreed, fusion_bytes, splits), mismatches)


def padded(nbytes: int) -> int:
    """Bytes to the begin of the next tensor in a block."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def batches(ready: Iterable[tuple[int, Signature]], fusion_bytes: int, splits: bool) -> list[Batch]:
    """The calls for some tensors, the same for the same arguments.

    Args:
        ready: Number and signature of each; packed tensors keep this order.
        fusion_bytes: Most bytes that are packed for one call.
        splits: Pack longer tensors as well, unless ranks share their memory. Else they are reduced
            where they are.
    """
    placed, whole, empty = [], [], []
    packed: dict[str, list[tuple[int, int]]] = {}
    for number, signature in ready:
        place, nbytes = signature.place, signature.nbytes
        if not nbytes:
            empty.append(number)
        elif place is not None and place != LOOSE:
            placed.append((place, number, signature))
        elif nbytes > fusion_bytes and (place == LOOSE or not splits):
            whole.append(Batch(signature.dtype, nbytes, (number,), LOOSE))
        else:
            packed.setdefault(signature.dtype, []).append((number, nbytes))
    calls = _runs(sorted(placed)) + whole
    if empty:
        calls.append(Batch("uint8", 0, tuple(empty)))
    for dtype, tensors in packed.items():
        calls += _packed(dtype, tensors, fusion_bytes)
    return calls


def _runs(placed: Sequence[tuple[Place, int, Signature]]) -> list[Batch]:
    """One call for tensors that follow each other in a block, with nothing but padding between."""
    runs: list[Batch] = []
    for place, number, signature in placed:
        dtype, nbytes = signature.dtype, signature.nbytes
        run = runs[-1] if runs else None
        if run is not None and run.place is not None and run.dtype == dtype:
            begin = run.place
            if (begin.block, begin.next) == (place.block, place.offset):
                runs[-1] = run._replace(
                    nbytes=place.offset + nbytes - begin.offset,
                    complete=(*run.complete, number),
                    place=begin._replace(next=place.next),
                )
                continue
        runs.append(Batch(dtype, nbytes, (number,), place))
    return runs


def _packed(dtype: str, tensors: list[tuple[int, int]], fusion_bytes: int) -> list[Batch]:
    """Calls for tensors of one type, (number, bytes) each; they are cut where the buffer ends."""
    itemsize = np.dtype(dtype).itemsize
    room = fusion_bytes // itemsize * itemsize
    calls: list[Batch] = []
    pieces: list[Piece] = []
    complete: list[int] = []
    used = 0

    def close() -> None:
        nonlocal used
        if pieces:
            calls.append(Batch(dtype, used, tuple(complete), None, tuple(pieces)))
        pieces.clear()
        complete.clear()
        used = 0

    for number, nbytes in tensors:
        start = 0
        if nbytes <= room < padded(used) + nbytes:  # it fits into the next one
            close()
        while start < nbytes:
            offset = padded(used)
            length = min(nbytes - start, room - offset)
            if length <= 0:
                close()
                continue
            pieces.append(Piece(number, start // itemsize, (start + length) // itemsize, offset))
            start, used = start + length, offset + length
        complete.append(number)
    close()
    return calls


class Reducer:
    """Reduces batches in place: the sum over all ranks, or their mean.

    Attributes:
        packed_bytes: that were copied to the fusion buffer.
        calls: of Allreduce.
    """

    def __init__(
        self, comm: Communicator, fusion_bytes: int, mean: bool, slice_bytes: int | None = None
    ) -> None:
        """Make no buffer yet.

        Args:
            slice_bytes: of a call for tensors that are reduced where they are; None: any number.
        """
        self._comm, self._scale = comm, 1 / comm.size if mean else None
        self._fusion_bytes, self._slice_bytes = fusion_bytes, slice_bytes
        self._buffer: Array | None = None
        self._blocks: list[Array] = []
        self._next: list[dict[int, int]] = []
        """For each block: the end of a tensor, and where the next one begins."""
        self.packed_bytes = self.calls = 0

    def block(self, sizes: Iterable[int]) -> list[Array]:
        """Zeros for tensors of so many bytes, as bytes: one after the other in a new block."""
        begins, ends, used = [], [], 0
        for nbytes in sizes:
            begins.append(used)
            ends.append(used + nbytes)
            used += padded(nbytes)
        block = self._comm.zeros(used, "uint8")
        self._blocks.append(block)
        self._next.append(dict(zip(ends, [*begins, used][1:], strict=True)))
        return [block[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def place_of(self, array: Array) -> Place | None:
        """Where an array is in memory that ranks share."""
        address = array.__array_interface__["data"][0]
        for number, block in enumerate(self._blocks):
            offset = address - block.__array_interface__["data"][0]
            if 0 <= offset < block.nbytes:
                end = offset + array.nbytes
                return Place(number, offset, self._next[number].get(end, end))
        return LOOSE if source(array) == "arena" else None

    def reduce(self, batch: Batch, arrays: Mapping[int, Array]) -> None:
        """Do a batch, on arrays by the numbers of their tensors; collective.

        Raises:
            PeerError: A rank died or left.
        """
        if not batch.nbytes:
            return
        if batch.place is None:
            self._reduce_packed(batch, arrays)
            return
        if batch.place == LOOSE:
            memory = arrays[batch.complete[0]].reshape(-1)
        else:
            start = batch.place.offset
            block = self._blocks[batch.place.block]
            memory = block[start : start + batch.nbytes].view(batch.dtype)
        entries = (self._slice_bytes or memory.nbytes) // memory.itemsize
        for start in range(0, memory.size, entries):
            part = memory[start : start + entries]
            self._sum(part)
            if self._scale is not None:
                part *= self._scale

    def _reduce_packed(self, batch: Batch, arrays: Mapping[int, Array]) -> None:
        if self._buffer is None:
            self._buffer = self._comm.zeros(self._fusion_bytes, "uint8")
        whole = self._buffer[: batch.nbytes].view(batch.dtype)
        pairs = []
        for number, start, stop, offset in batch.pieces:
            begin = offset // whole.itemsize
            pairs.append(
                (arrays[number].reshape(-1)[start:stop], whole[begin : begin + stop - start])
            )
        for own, part in pairs:
            np.copyto(part, own)
        self._sum(whole)
        for own, part in pairs:
            if self._scale is None:
                np.copyto(own, part)
            else:
                np.multiply(part, self._scale, out=own)
        self.packed_bytes += batch.nbytes

    def _sum(self, memory: Array) -> None:
        self.calls += 1
        self._comm.Allreduce(MPI.IN_PLACE, memory)
