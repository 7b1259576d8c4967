"""Keys (tensors) in one flat array, cut into chunks, and the chunks' owners.

Pure arithmetic on bytes: knows no memory, no ranks' processes and no optimiser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import NamedTuple

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
    found: dict[int, int] = {}
    for number in sorted(range(len(pieces)), key=lambda each: -pieces[each][2]):
        load, node = loads[0]
        among, nbytes = on_node[node], pieces[number][2]
        taken, found[number] = among[0]
        heapreplace(among, (taken + nbytes, found[number]))
        heapreplace(loads, (load + nbytes / len(among), node))
    return [Chunk(*piece, found[number]) for number, piece in enumerate(pieces)]


def shares(chunks: Sequence[Chunk]) -> dict[int, int]:
    """Bytes that each owner has."""
    found: dict[int, int] = {}
    for chunk in chunks:
        found[chunk.owner] = found.get(chunk.owner, 0) + chunk.nbytes
    return found
