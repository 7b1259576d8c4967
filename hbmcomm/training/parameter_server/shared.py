"""Steps over the arena: owners read gradients and write weights where the workers have them.

The C core does each step (kernels/update.c); this module gives it the places of all arrays.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.arena import Arena, MappedBytes
from hbmcomm.training.parameter_server.chunks import Chunk
from hbmcomm.training.parameter_server.job import ITEM, Arrays, Design, Job
from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer
from hbmcomm.transports.native import ffi, lib

_in_flight: set[Shared] = set()
"""The core uses their memory whatever the program does with them."""


def _address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


class Shared:
    """This rank's part of a job on ranks that share an arena; see `Way`. Collective to make.

    Args:
        comm: A Communicator of transport direct, of this job alone.
        states: Arrays of state that the optimiser keeps.
        arrays: Gradients and weights to use; None: new ones.
    """

    def __init__(
        self, comm: Any, job: Job, states: int, design: Design, arrays: Arrays | None
    ) -> None:
        self._comm, self._job, self._core = comm, job, comm._state
        arena: Arena = comm._arena
        own = job.of(job.rank)
        floats = job.nbytes // ITEM if job.works else 0
        self._owned = list(accumulate((chunk.nbytes for chunk in own), initial=0))
        holds = job.works and (not design.shared_weights or job.rank == job.workers[0])
        local: Floats
        self.gradients: Floats
        self.gradients, local = arrays or (
            comm.zeros(floats, "float32"),
            comm.zeros(floats if holds else 0, "float32"),
        )
        apart = not job.works and not design.shared_weights
        self._masters: Floats = comm.zeros(apart * self._owned[-1] // ITEM, "float32")
        self._ready = comm.zeros(len(job.keys) if job.works else 0, "uint64")
        self._states = [comm.zeros(self._owned[-1] // ITEM, "float32") for _ in range(states)]
        most = max((chunk.nbytes for chunk in own), default=0)
        self._sums = comm.empty((most if design.fused else self._owned[-1]) // ITEM, "float32")
        own_places = self.gradients, local, self._ready, self._masters
        self._places = _exchanged(comm, arena, own_places)
        self._closed: list[bool] = []
        # a slower rank may copy weights of a step that this one has completed before it left
        ranges = [(_address(each), each.nbytes) for each in own_places if each.nbytes]
        arena.quarantine(ranges, partial(bool, self._closed))
        self.weights = local
        if job.works and not holds:
            found = MappedBytes(arena, self._places[job.workers[0]][1], ITEM * floats)
            self.weights = np.asarray(found).view("float32")
        self._update = self._described(own, design)
        self._operation = self._started_by(comm._core)

    def _described(self, own: list[Chunk], design: Design) -> Any:
        """The core's hbm_update of this rank."""
        job, places = self._job, self._places
        update = ffi.new("hbm_update *")
        pushes = not design.shared_weights and not design.pull
        workers = [
            (
                rank,
                places[rank][0],
                places[rank][1] * (pushes and rank != job.rank),
                places[rank][2],
            )
            for rank in job.workers
        ]
        chunks = [
            (chunk.key, chunk.offset, chunk.nbytes, state, self._master(design, chunk, state))
            for chunk, state in zip(own, self._owned, strict=False)
        ]
        pulls = []
        if design.pull and job.works and not design.shared_weights:
            for owner in job.owners:
                state = 0
                for chunk in job.of(owner) if owner != job.rank else []:
                    to = _address(self.weights) + chunk.offset
                    pulls.append((self._master(design, chunk, state), to, chunk.nbytes))
                    state += chunk.nbytes
        self._kept = [
            ffi.new("hbm_worker[]", workers),
            ffi.new("hbm_chunk[]", chunks),
            ffi.new("hbm_copied[]", pulls),
        ]
        update.workers, update.chunks, update.pulls = self._kept
        update.worker_count, update.chunk_count = len(workers), len(chunks)
        update.pull_count, update.separate = len(pulls), not design.fused
        update.sums = _address(self._sums)
        update.ready, update.keys = _address(self._ready), self._ready.size
        update.first, update.second = [*map(_address, self._states), 0, 0][:2]
        return update

    def _master(self, design: Design, chunk: Chunk, state: int) -> int:
        """Where the owner of a chunk reads and updates its weights; `state` is its place there."""
        if design.shared_weights:
            return self._places[self._job.workers[0]][1] + chunk.offset
        if chunk.owner in self._job.workers:
            return self._places[chunk.owner][1] + chunk.offset
        return self._places[chunk.owner][3] + state

    def _started_by(self, core: Any) -> Any:
        fields = {
            "operation": lib.HBM_UPDATE,
            "dtype": lib.HBM_FLOAT32,
            "count": self._job.nbytes // ITEM,
            "update": self._update,
        }
        if self._job.works:
            fields |= {"send": _address(self.gradients), "recv": _address(self.weights)}
        return ffi.gc(lib.hbm_new(core, ffi.new("hbm_call *", fields)), lib.hbm_drop)

    def own(self, key: int, values: Floats) -> None:
        if self._masters.size:
            self._job.assign(key, values, self._job.of(self._job.rank), self._masters)

    def begin(self, step: int, optimizer: Optimizer) -> None:
        how = {"code": getattr(lib, optimizer.code), "scale": self._job.scale}
        self._update.optimizer = how | optimizer.coefficients(step)._asdict()
        self._update.step = step
        _in_flight.add(self)
        self._check(lib.hbm_start(self._operation, 0))

    def push(self, first: int, count: int) -> None:
        self._check(lib.hbm_push(self._core.handle, self._update, first, count))

    def is_done(self) -> bool:
        status = lib.hbm_test(self._operation, 0)
        self._check(status)
        if status == lib.HBM_PENDING:
            return False
        _in_flight.discard(self)
        return True

    def finish(self) -> None:
        status = lib.hbm_wait(self._operation, 0)
        if status:
            raise self._core.error(status)
        _in_flight.discard(self)

    def _check(self, status: int) -> None:
        if status not in (lib.HBM_OK, lib.HBM_PENDING):
            raise self._core.error(status)

    def abandon(self, why: str) -> None:
        """Do nothing: the communicator itself notifies the other ranks."""

    def close(self) -> None:
        """Wait for all ranks, free what only steps need; the arrays stay until nobody uses them."""
        self._comm.Barrier()
        _in_flight.discard(self)
        self._closed.append(True)
        self._operation = None


def _exchanged(comm: Any, arena: Arena, arrays: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """The addresses of every rank's arrays in this process; collective."""
    base = arena.ranks[comm.rank].arrays
    found = []
    for rank, places in enumerate(
        comm.allgather([(_address(each) - base, each.nbytes) for each in arrays])
    ):
        room = arena.ranks[rank].array_bytes
        if any(nbytes and not 0 <= at <= room - nbytes for at, nbytes in places):
            raise HbmcommError(f"rank {rank} named memory that is not its own; free its job")
        found.append(tuple(arena.ranks[rank].arrays + at for at, _ in places))
    return found
