"""Which tensors are ready on all ranks; the response cache that makes this one small Allreduce.

Each tensor that was ever announced has a number, the same on all ranks, and what each rank
announced of it. From then on a rank says that it is ready by one bit. Only a tensor that is new or
changed costs an exchange. Knows names and signatures of tensors, no data.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError

NEWS, LEAVING, STAYING, STALLED = 1, 2, 4, 8
"""Bits before those of tensors. A bit that all ranks set stays set (BAND): NEWS, nobody has news
or is late; LEAVING, all leave; STAYING, nobody leaves; STALLED, nobody's patience is over."""
FLAGS = 4


class TensorMismatch(HbmcommError):
    """Ranks submitted tensors of different shapes or types by one name."""


class TensorMissing(HbmcommError):
    """A rank did not submit a tensor that others wait for."""


class Place(NamedTuple):
    """Where a tensor is in a block that all ranks made alike."""

    block: int
    offset: int
    """In bytes."""
    next: int
    """Where its neighbour begins: its end, or the end of the padding that follows it."""


class Signature(NamedTuple):
    """What ranks send each other about a tensor."""

    shape: tuple[int, ...]
    dtype: str
    place: Place | None
    """None: memory of the program."""

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Known:
    """A tensor that was announced: its number, its name, and each rank's signature by rank."""

    def __init__(self, number: int, name: str, ranks: int) -> None:
        self.number, self.name = number, name
        self.signatures: list[Signature | None] = [None] * ranks

    def agreed(self) -> Signature:
        """The signature of all ranks, with a place where all ranks have it there.

        Raises:
            TensorMismatch: Alike on every rank.
        """
        first = self.signatures[0]
        assert first is not None  # ready on all ranks
        for rank, signature in enumerate(self.signatures):
            assert signature is not None
            if signature[:2] != first[:2]:
                raise TensorMismatch(
                    f"{self.name!r} is {_described(first)} on rank 0, and {_described(signature)} "
                    f"on rank {rank}; submit one shape and type by this name on all ranks"
                )
        alike = all(signature == first for signature in self.signatures)
        return first if alike else first._replace(place=None)


class Round(NamedTuple):
    """What a round of negotiation found, alike on every rank."""

    ready: tuple[Known, ...]
    """By number."""
    all_leave: bool
    some_leave: bool
    missing: dict[str, list[int]]
    """{name: ranks that did not submit it}, where some rank's patience is over."""


class Negotiation:
    """The response cache of one communicator; `round` is collective.

    Args:
        lateness: Seconds between the beginnings of two rounds of a rank from which on it is late.

    Attributes:
        exchanges: rounds in which some rank had news, or was late.
    """

    def __init__(self, comm: Communicator, lateness: float) -> None:
        self._comm, self._lateness = comm, lateness
        self._began = -math.inf
        self._known: list[Known] = []
        self._by_name: dict[str, Known] = {}
        self._words = comm.zeros(1, "uint64")
        self.exchanges = 0

    def round(
        self,
        pending: Mapping[str, Signature],
        leaving: bool,
        stalled: bool,
        joined: Callable[[], None],
    ) -> Round:
        """Which of the pending tensors are ready on all ranks.

        Args:
            joined: Called once all ranks are in this round. It may take tensors out of `pending`
                that were given up meanwhile; where a rank is late, the others learn of it.

        Raises:
            PeerError: A rank died or left.
        """
        now = time.monotonic()
        is_late, self._began = now - self._began > self._lateness, now
        flags = (LEAVING if leaving else STAYING) | (0 if stalled else STALLED)
        bits, news = self._bits(pending)
        agreed = self._all_of(flags | (0 if news or is_late else NEWS) | bits << FLAGS)
        joined()
        if not agreed & NEWS:
            _, news = self._bits(pending)
            self._exchange(news)
            bits, _ = self._bits(pending)
            agreed = self._all_of(flags | NEWS | bits << FLAGS)
        missing = {} if agreed & STALLED else self._missing(bits)
        ready, rest = [], agreed >> FLAGS
        while rest:
            lowest = rest & -rest
            ready.append(self._known[lowest.bit_length() - 1])
            rest ^= lowest
        return Round(tuple(ready), bool(agreed & LEAVING), not agreed & STAYING, missing)

    def _bits(self, pending: Mapping[str, Signature]) -> tuple[int, dict[str, Signature]]:
        """A bit for each pending tensor that was announced as it is; the others."""
        bits, news, rank = 0, {}, self._comm.rank
        for name, signature in pending.items():
            known = self._by_name.get(name)
            if known is None or known.signatures[rank] != signature:
                news[name] = signature
            else:
                bits |= 1 << known.number
        return bits, news

    def _all_of(self, bits: int) -> int:
        """The bits that all ranks set."""
        words = self._words
        words.view(np.uint8)[:] = np.frombuffer(bits.to_bytes(words.nbytes, "little"), np.uint8)
        self._comm.Allreduce(MPI.IN_PLACE, words, op=MPI.BAND)
        return int.from_bytes(words.tobytes(), "little")

    def _exchange(self, news: dict[str, Signature]) -> None:
        """Learn what is new on any rank; numbers are given in the order of ranks."""
        self.exchanges += 1
        for rank, line in enumerate(self._gathered(json.dumps(news).encode())):
            for name, (shape, dtype, place) in json.loads(line).items():
                signature = Signature(tuple(shape), dtype, place and Place(*place))
                known = self._by_name.get(name)
                if known is None:
                    known = Known(len(self._known), name, self._comm.size)
                    self._known.append(known)
                    self._by_name[name] = known
                known.signatures[rank] = signature
        words = -(-(FLAGS + len(self._known)) // 64)
        if words > self._words.size:
            self._words = self._comm.zeros(words, "uint64")

    def _missing(self, bits: int) -> dict[str, list[int]]:
        """Which ranks did not submit which tensors that others did."""
        own = bits.to_bytes(self._words.nbytes, "little")
        masks = [int.from_bytes(mask, "little") for mask in self._gathered(own)]
        anywhere = 0
        for mask in masks:
            anywhere |= mask
        return {
            known.name: lacking
            for known in self._known
            if anywhere >> known.number & 1
            and (lacking := [r for r, mask in enumerate(masks) if not mask >> known.number & 1])
        }

    def _gathered(self, item: bytes) -> list[bytes]:
        """The item of every rank; through the transport, which notices a rank that dies."""
        own = np.frombuffer(item, np.uint8)
        lengths = np.empty(self._comm.size, np.int64)
        self._comm.Allgather(np.array([own.size], np.int64), lengths)
        counts = [int(length) for length in lengths]
        received = np.empty(sum(counts), np.uint8)
        self._comm.Allgatherv(own, [received, counts])
        ends = np.cumsum(counts[:-1], dtype=np.int64)
        return [part.tobytes() for part in np.split(received, ends)]


def _described(signature: Signature) -> str:
    return f"{signature.shape} of {signature.dtype}"
