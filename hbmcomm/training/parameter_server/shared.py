"""Steps over the arena: owners read gradients and write weights where the workers have them.

A worker raises a flag for each key; C code (update.c) updates the chunks of which all workers have
raised it. Each rank then raises the flag `done`, and the step ends when all have.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import hbmcomm
from hbmcomm import Communicator, Flags
from hbmcomm.training.parameter_server.job import ITEM, Arrays, Chunk, Design, Job
from hbmcomm.training.parameter_server.kernels import address, ffi, lib
from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer

_GRADIENTS, _WEIGHTS, _READY, _MASTERS, _DONE = range(5)
_LINE = 16  # flags in a pair of cache lines


class Shared:
    """This rank's part of a job on ranks that share an arena; see `Way`. Collective to make.

    Args:
        comm: A Communicator of transport direct, of this job alone.
        states: Arrays of state that the optimiser keeps.
        arrays: Gradients and weights to use; None: new ones.
    """

    def __init__(
        self, comm: Communicator, job: Job, states: int, design: Design, arrays: Arrays | None
    ) -> None:
        self._comm, self._job = comm, job
        floats = job.nbytes // ITEM if job.works else 0
        holds = job.works and (not design.shared_weights or job.rank == job.workers[0])
        self.gradients: Floats
        local: Floats
        self.gradients, local = arrays or (
            comm.zeros(floats, "float32"),
            comm.zeros(floats if holds else 0, "float32"),
        )
        own = job.of(job.rank)  # where memory is short, chunks are never listed
        self._owned = list(accumulate((chunk.nbytes for chunk in own), initial=0))
        apart = not job.works and not design.shared_weights
        self._masters: Floats = comm.zeros(apart * self._owned[-1] // ITEM, "float32")
        ready = comm.zeros(len(job.keys) if job.works else 0, "uint64")
        self._states = [comm.zeros(self._owned[-1] // ITEM, "float32") for _ in range(states)]
        most = max((chunk.nbytes for chunk in own), default=0)
        self._sums = comm.empty((most if design.fused else self._owned[-1]) // ITEM, "float32")
        given = (self.gradients, local, ready, self._masters, comm.zeros(_LINE, "uint64"))
        names = comm.allgather([comm.share(array) for array in given])
        self._places = [[comm.attach(name) for name in of_rank] for of_rank in names]
        self.weights = self._places[job.workers[0]][_WEIGHTS] if job.works and not holds else local
        self._ready = {rank: self._flags(rank, _READY) for rank in job.workers}
        self._done = [self._flags(rank, _DONE) for rank in range(comm.size)]
        self._step = self._described(own, design)
        self._next, self._is_over = len(own), True

    def _flags(self, rank: int, which: int) -> Flags:
        return self._comm.flags(self._places[rank][which], rank)

    def _described(self, own: list[Chunk], design: Design) -> Any:
        """The ps_step of this rank."""
        job, step = self._job, ffi.new("ps_step *")
        pushes = not design.shared_weights and not design.pull
        workers = []
        for rank in job.workers:
            gradients, weights, ready = map(address, self._places[rank][:_MASTERS])
            workers.append((gradients, weights * (pushes and rank != job.rank), ready))
        chunks = [
            (chunk.key, chunk.offset, chunk.nbytes, state, self._master(design, chunk, state))
            for chunk, state in zip(own, self._owned, strict=False)
        ]
        pulls = []
        if design.pull and job.works and not design.shared_weights:
            for owner in job.owners:
                state = 0
                for chunk in job.of(owner) if owner != job.rank else []:
                    to = address(self.weights) + chunk.offset
                    pulls.append((self._master(design, chunk, state), to, chunk.nbytes))
                    state += chunk.nbytes
        self._pulls = ffi.new("ps_copy[]", pulls)
        self._kept = [ffi.new("ps_worker[]", workers), ffi.new("ps_chunk[]", chunks)]
        self._kept.append(ffi.new("const void *[]", len(workers)))
        step.workers, step.chunks, step.gradients = self._kept
        step.worker_count, step.chunk_count = len(workers), len(chunks)
        step.separate, step.sums = not design.fused, address(self._sums)
        step.first, step.second = [*map(address, self._states), 0, 0][:2]
        thresholds = {
            threshold.variable: threshold.value for threshold in hbmcomm.tuning(self._comm.size)
        }
        moved = 2 * self._comm.size * job.nbytes  # gradients and weights of all ranks
        step.streaming = moved > thresholds["HBMCOMM_STREAM_BYTES"]
        return step

    def _master(self, design: Design, chunk: Chunk, state: int) -> int:
        """Where the owner of a chunk reads and updates its weights; `state` is its place there."""
        if design.shared_weights:
            return address(self._places[self._job.workers[0]][_WEIGHTS]) + chunk.offset
        if chunk.owner in self._job.workers:
            return address(self._places[chunk.owner][_WEIGHTS]) + chunk.offset
        return address(self._places[chunk.owner][_MASTERS]) + state

    def own(self, key: int, values: Floats) -> None:
        if self._masters.size:
            self._job.assign(key, values, self._job.of(self._job.rank), self._masters)

    def begin(self, step: int, optimizer: Optimizer) -> None:
        how = {"code": getattr(lib, optimizer.code), "scale": self._job.scale}
        self._step.optimizer = how | optimizer.coefficients(step)._asdict()
        self._step.step = step
        self._next, self._is_over = 0, False
        self._update()

    def push(self, first: int, count: int) -> None:
        self._ready[self._job.rank].raise_to(self._step.step, first, count)
        self._update()

    def is_done(self) -> bool:
        if self._is_over:
            return True
        if not self._update():
            key, step = self._awaited(), self._step.step
            for flags in self._ready.values():
                flags.test(step, key)
            return False
        if not all(flags.test(self._step.step) for flags in self._done):
            return False
        self._end()
        return True

    def finish(self) -> None:
        step = self._step.step
        while not self._update():
            key = self._awaited()
            for flags in self._ready.values():
                flags.wait(step, key)
        if not self._is_over:
            for flags in self._done:
                flags.wait(step)
            self._end()

    def _update(self) -> bool:
        """Update the chunks of which all gradients are there; whether these are all."""
        count = self._step.chunk_count
        if self._is_over or self._next == count > 0:
            return True
        self._next = lib.ps_update(self._step, self._next)
        if self._next < count:
            return False
        self._done[self._job.rank].raise_to(self._step.step)
        return True

    def _awaited(self) -> int:
        """The key of which a gradient is missing."""
        return int(self._step.chunks[self._next].key)

    def _end(self) -> None:
        lib.ps_pull(self._pulls, len(self._pulls), self._step.streaming)
        self._is_over = True

    def abandon(self, why: str) -> None:
        """Do nothing: the communicator itself notifies the other ranks."""

    def close(self) -> None:
        """Wait for all ranks; the arrays stay until nobody uses them."""
        self._comm.Barrier()
