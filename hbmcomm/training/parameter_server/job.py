"""What all ranks of a job agree on: tensors, chunks, owners, workers. Moves no data.

Tensors (keys) are in one flat array, cut into chunks that have one owner each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from math import prod
from typing import NamedTuple, Protocol

from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer

LINE = 64
"""Every key begins at a cache line, and every chunk is whole lines: no two owners share one."""


class Key(NamedTuple):
    """Where one tensor is in the flat array; bytes."""

    offset: int
    nbytes: int
    """With its padding."""


class Chunk(NamedTuple):
    """A part of a key, and the rank that owns it."""

    key: int
    offset: int
    nbytes: int
    owner: int


def laid_out(lengths: Sequence[int]) -> list[Key]:
    """The place of each tensor, from their bytes."""
    keys, at = [], 0
    for nbytes in lengths:
        keys.append(Key(at, -(-nbytes // LINE) * LINE))
        at += keys[-1].nbytes
    return keys


def cut(keys: Sequence[Key], chunk_bytes: int) -> Iterator[tuple[int, int, int]]:
    """(key, offset, bytes) of each chunk: at most `chunk_bytes`, in the order of the keys."""
    for number, key in enumerate(keys):
        for offset in range(key.offset, key.offset + key.nbytes, chunk_bytes):
            yield number, offset, min(chunk_bytes, key.offset + key.nbytes - offset)


def owned(keys: Sequence[Key], chunk_bytes: int, nodes: Mapping[int, int]) -> list[Chunk]:
    """The chunks with their owners, in the order of the keys.

    Largest first, each chunk goes to the NUMA node with the fewest bytes for each of its owners,
    and there to the owner with the fewest bytes (Graham's LPT rule, at both levels).

    Args:
        nodes: The NUMA node of each owner; at least one owner.
    """
    pieces = list(cut(keys, chunk_bytes))
    on_node: dict[int, list[tuple[int, int]]] = {}
    for rank in sorted(nodes):
        on_node.setdefault(nodes[rank], []).append((0, rank))
    loads = [(0.0, node) for node in sorted(on_node)]
    heapify(loads)
    owner_of: dict[int, int] = {}
    for number in sorted(range(len(pieces)), key=lambda index: -pieces[index][2]):
        load, node = loads[0]
        among, nbytes = on_node[node], pieces[number][2]
        taken, owner_of[number] = among[0]
        heapreplace(among, (taken + nbytes, owner_of[number]))
        heapreplace(loads, (load + nbytes / len(among), node))
    return [Chunk(*piece, owner_of[number]) for number, piece in enumerate(pieces)]


def shares(chunks: Sequence[Chunk]) -> dict[int, int]:
    """Bytes that each owner has."""
    totals: dict[int, int] = {}
    for chunk in chunks:
        totals[chunk.owner] = totals.get(chunk.owner, 0) + chunk.nbytes
    return totals


Shape = tuple[int, ...]
Arrays = tuple[Floats, Floats]
"""Gradients and weights of one rank, flat."""
ITEM = 4  # bytes of a float32


class Design(NamedTuple):
    """What may differ between designs; the defaults are the fast one."""

    shared_weights: bool = False
    """All workers read one array, that of the first worker."""
    fused: bool = True
    """A chunk is optimised right after its gradients were added; else after those of its key."""
    pull: bool = False
    """Workers copy the new weights themselves after the step; else owners write them."""


@dataclass(frozen=True)
class Job:
    """The tensors of one job and the ranks that work on them.

    Attributes:
        rank: This rank.
        shapes: Of the tensors, by key.
        owners: The ranks that own chunks, and the NUMA node of each.
        workers: The ranks that compute gradients, in the order in which these are added.
        scale: Multiplies each sum of gradients.
    """

    rank: int
    shapes: tuple[Shape, ...]
    chunk_bytes: int
    owners: Mapping[int, int]
    workers: tuple[int, ...]
    scale: float

    @cached_property
    def keys(self) -> list[Key]:
        return laid_out([ITEM * prod(shape) for shape in self.shapes])

    @cached_property
    def chunks(self) -> list[Chunk]:
        return owned(self.keys, self.chunk_bytes, self.owners)

    @property
    def works(self) -> bool:
        """Whether this rank computes gradients."""
        return self.rank in self.workers

    @property
    def nbytes(self) -> int:
        """Of each flat array."""
        return sum(key.nbytes for key in self.keys)

    def of(self, owner: int) -> list[Chunk]:
        """What a rank owns, last key first: backward passes complete gradients in this order."""
        return [chunk for chunk in reversed(self.chunks) if chunk.owner == owner]

    def views(self, flat: Floats) -> list[Floats]:
        """The tensors in a flat array."""
        tensors = []
        for key, shape in zip(self.keys, self.shapes, strict=True):
            first = key.offset // ITEM
            tensors.append(flat[first : first + prod(shape)].reshape(shape))
        return tensors

    def assign(self, key: int, values: Floats, chunks: Iterable[Chunk], flat: Floats) -> None:
        """Write the values of a key where `flat` has its chunks, which follow one another there."""
        values, at = values.reshape(-1), 0
        for chunk in chunks:
            if chunk.key == key:
                first = (chunk.offset - self.keys[key].offset) // ITEM
                part = values[first : first + chunk.nbytes // ITEM]
                flat[at : at + part.size] = part
            at += chunk.nbytes // ITEM


class Way(Protocol):
    """How the chunks of a job move: this rank's part in each step.

    Attributes:
        gradients, weights: Flat arrays of this rank; empty on one that is no worker.
    """

    gradients: Floats
    weights: Floats

    def own(self, key: int, values: Floats) -> None:
        """Set the weights of a key in what this rank holds beside `weights`, as an owner."""

    def begin(self, step: int, optimizer: Optimizer) -> None:
        """Begin a step."""

    def push(self, first: int, count: int) -> None:
        """The gradients of `count` keys from `first` on are complete."""

    def is_done(self) -> bool:
        """Whether this rank's part of the step is over; advances it."""

    def finish(self) -> None:
        """Wait until it is."""

    def abandon(self, why: str) -> None:
        """Leave without the other ranks, beside their communicator: they get PeerError."""

    def close(self) -> None:
        """Wait for all ranks, then free what only steps need; no step is in flight."""
