"""Steps over messages of MPI: for ranks that share no memory, such as those of different hosts.

What an owner has is cut into pieces. A worker sends a piece when its gradients are complete, and
the owner sends the new weights back when the piece of the last worker has come, while others are
under way. A worker sends few pieces at once: were all of them under way, they would share the link,
the first would arrive with the last, and nothing would come back meanwhile. It sends to one owner
after the other, and each worker begins with another one. Between ranks of one host, MPI's own
transport moves the pieces.
"""

from __future__ import annotations

import atexit
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import PeerError, Watch
from hbmcomm.training.parameter_server.job import ITEM, Arrays, Chunk, Job
from hbmcomm.training.parameter_server.kernels import ffi, lib, pointers
from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer
from hbmcomm.training.together import Patience, keep_for_ever

LEAST_BYTES = 96 * 2**10
"""The least bytes of a piece, but for the last one of an owner."""
MOST_PIECES = 256
"""The most pieces of a job, but for the last one of each owner: each look tests all requests."""
WINDOW = 8
"""Pieces under way from a worker."""
STALL = 0.1
"""Seconds without a sent piece after which all go: an owner that is busy with another job may wait
for one that waits for later pieces."""
LOOK = 1e-3
"""Seconds between two looks that count as waiting at most: a program may compute meanwhile."""
_in_flight: set[Messages] = set()
"""Jobs with a step in flight: messages may still be written into their memory."""
GRADIENTS, WEIGHTS = range(2)
"""Kinds of messages; a tag is 2 * piece + kind."""


@atexit.register
def _keep_in_flight() -> None:
    for job in _in_flight:
        keep_for_ever(job)


def pieces(job: Job, owner: int) -> Iterator[list[Chunk]]:
    """The chunks of an owner, in groups that are messages."""
    least = max(LEAST_BYTES, job.nbytes // MOST_PIECES)
    group: list[Chunk] = []
    nbytes = 0
    for chunk in job.of(owner):
        group.append(chunk)
        nbytes += chunk.nbytes
        if nbytes >= least:
            yield group
            group, nbytes = [], 0
    if group:
        yield group


def in_turns(job: Job) -> list[tuple[int, int, list[Chunk]]]:
    """(number, owner, piece) in the order in which this worker sends."""
    owners = [*job.owners]
    first = job.workers.index(job.rank) % len(owners)
    turns = [
        (number, owner, piece)
        for owner in owners[first:] + owners[:first]
        for number, piece in enumerate(pieces(job, owner))
    ]
    return sorted(turns, key=itemgetter(0))


def _strided(piece: Sequence[Chunk]) -> MPI.Datatype:
    """A piece within the flat array of a worker."""
    lengths, places = [chunk.nbytes for chunk in piece], [chunk.offset for chunk in piece]
    return MPI.BYTE.Create_hindexed(lengths, places).Commit()


class _Owned:
    """One piece of an owner: room for the gradient of each worker, weights and state."""

    def __init__(self, piece: list[Chunk], workers: int, states: int) -> None:
        floats = sum(chunk.nbytes for chunk in piece) // ITEM
        self.chunks = piece
        self.gradients = np.zeros((workers, floats), "float32")
        self.weights = np.zeros(floats, "float32")
        self.states = [np.zeros(floats, "float32") for _ in range(states)]
        self.awaited = workers
        self._gradients = pointers([*self.gradients])

    def update(self, how: Any) -> None:
        """Add the gradients and optimise; `how` is a ps_optimizer."""
        places = pointers([self.gradients[0], self.weights, *self.states])
        total, weights, first, second = [*places, ffi.NULL, ffi.NULL][:4]
        lib.ps_optimize(
            how,
            self._gradients,
            len(self.gradients),
            total,
            weights,
            first,
            second,
            self.weights.size,
        )


class _Sends:
    """What a worker sends in a step, at most `WINDOW` pieces at once."""

    def __init__(self) -> None:
        self._waiting: deque[MPI.Prequest] = deque()
        self._active: list[MPI.Prequest] = []
        self._looked = self._stalled = 0.0

    def add(self, request: MPI.Prequest) -> None:
        """Send a piece, after those that were added before."""
        self._waiting.append(request)

    def advance(self) -> bool:
        """Begin what may begin; whether any piece was sent or begun."""
        now = time.monotonic()
        self._stalled += min(now - self._looked, LOOK)
        self._looked = now
        unsent = [request for request in self._active if not request.Test()]
        sent = len(self._active) - len(unsent)
        if sent or not unsent:
            self._stalled = 0.0
        room = WINDOW - len(unsent) if self._stalled < STALL else len(self._waiting)
        begun = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        _start(begun)
        self._active = unsent + begun
        return bool(sent or begun)

    def are_over(self) -> bool:
        return not self._active and not self._waiting


class Messages:
    """This rank's part of a job on ranks that share no memory; see `Way`.

    Args:
        comm: A communicator of this job alone.
        states: Arrays of state that the optimiser keeps.
        arrays: Gradients and weights to use; None: new ones.
    """

    def __init__(self, comm: MPI.Intracomm, job: Job, states: int, arrays: Arrays | None) -> None:
        self._comm, self._job = comm, job
        floats = job.nbytes // ITEM if job.works else 0
        self.gradients: Floats
        self.weights: Floats
        self.gradients, self.weights = arrays or (
            np.zeros(floats, "float32"),
            np.zeros(floats, "float32"),
        )
        self._how = ffi.new("ps_optimizer *")
        self._owned = [_Owned(piece, len(job.workers), states) for piece in pieces(job, job.rank)]
        self._pieces: list[tuple[set[int], MPI.Prequest]] = []
        self._receives: list[MPI.Prequest] = []
        self._taken: list[MPI.Prequest] = []
        self._given: list[list[MPI.Prequest]] = []
        self._types: list[MPI.Datatype] = []
        self._prepare_worker(comm)
        self._prepare_owner(comm)
        self._active: list[MPI.Prequest] = []  # they may be complete; `_open` are not
        self._unsent: list[tuple[set[int], MPI.Prequest]] = []
        self._sends = _Sends()
        self._coming = self._open = 0
        self._moved = 0.0
        self._watch = Watch(comm)

    def _prepare_worker(self, comm: MPI.Intracomm) -> None:
        for number, owner, piece in in_turns(self._job) if self._job.works else ():
            kind = _strided(piece)
            self._types.append(kind)
            out = comm.Send_init([self.gradients, 1, kind], owner, 2 * number + GRADIENTS)
            into = comm.Recv_init([self.weights, 1, kind], owner, 2 * number + WEIGHTS)
            self._pieces.append(({chunk.key for chunk in piece}, out))
            self._receives.append(into)

    def _prepare_owner(self, comm: MPI.Intracomm) -> None:
        for number, piece in enumerate(self._owned):
            back = []
            for worker, gradient in zip(self._job.workers, piece.gradients, strict=True):
                self._taken.append(comm.Recv_init(gradient, worker, 2 * number + GRADIENTS))
                back.append(comm.Send_init(piece.weights, worker, 2 * number + WEIGHTS))
            self._given.append(back)

    def own(self, key: int, values: Floats) -> None:
        for piece in self._owned:
            self._job.assign(key, values, piece.chunks, piece.weights)

    def begin(self, step: int, optimizer: Optimizer) -> None:
        how = {"code": getattr(lib, optimizer.code), "scale": self._job.scale}
        self._how[0] = how | optimizer.coefficients(step)._asdict()
        for piece in self._owned:
            piece.awaited = len(self._job.workers)
        self._unsent = [(set(keys), request) for keys, request in self._pieces]
        self._coming = len(self._taken)
        self._active, self._open = [*self._receives], len(self._receives)
        self._moved = time.monotonic()
        _in_flight.add(self)
        _start([*self._taken, *self._receives])

    def push(self, first: int, count: int) -> None:
        done = set(range(first, first + count))
        for keys, request in self._unsent:
            keys -= done
            if not keys:
                self._sends.add(request)
        self._unsent = [send for send in self._unsent if send[0]]
        self.is_done()

    def is_done(self) -> bool:
        with _peers():
            if not self._advance():
                self._watch.check(time.monotonic() - self._moved)
        return self._is_over()

    def finish(self) -> None:
        patience = Patience(self._watch.check)
        with _peers():
            while not self._is_over():
                if self._advance():
                    patience = Patience(self._watch.check)
                else:
                    patience.wait()

    def _advance(self) -> bool:
        """Go on where messages have come and gone; whether any has."""
        came = MPI.Request.Testsome(self._taken) if self._coming else None
        for number in came or ():
            self._take(number)
        gone = self._sends.advance()
        ended = MPI.Request.Testsome(self._active) if self._open else None
        self._open -= len(ended or ())
        if came or ended or gone:
            self._moved = time.monotonic()
            return True
        return False

    def _is_over(self) -> bool:
        if self._coming or self._open or self._unsent:
            return False
        if not self._sends.are_over():
            return False
        _in_flight.discard(self)
        return True

    def _take(self, number: int) -> None:
        """A gradient has come; the last of its piece makes this owner update and answer."""
        self._coming -= 1
        at = number // len(self._job.workers)
        piece = self._owned[at]
        piece.awaited -= 1
        if not piece.awaited:
            piece.update(self._how)
            self._active += self._given[at]
            self._open += len(self._given[at])
            _start(self._given[at])

    def abandon(self, why: str) -> None:
        self._watch.fail(why)

    def close(self) -> None:
        patience, here = Patience(self._watch.check), self._comm.Ibarrier()
        with _peers():
            while not here.Test():
                patience.wait()
        self._watch.close()
        sends = [request for _, request in self._pieces]
        for request in chain(sends, self._receives, self._taken, *self._given):
            request.Free()
        for kind in self._types:
            kind.Free()


def _start(requests: list[MPI.Prequest]) -> None:
    if requests:
        MPI.Prequest.Startall(requests)


@contextmanager
def _peers() -> Iterator[None]:
    """Turns MPI's report of a lost rank into the library's error."""
    try:
        yield
    except MPI.Exception as error:
        raise PeerError(f"MPI failed in a step: {error}; the job is unusable now") from error
