"""The parameter server: gradients in, new weights out, over memory or messages.

Keeps the order of the program's calls; `arguments` checks what it gives, `shared` and `messages`
move data.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError
from hbmcomm.training.parameter_server.arguments import Asked, Owners, agreed
from hbmcomm.training.parameter_server.job import Design, Way, shares
from hbmcomm.training.parameter_server.messages import Messages
from hbmcomm.training.parameter_server.optimizers import Floats, Optimizer
from hbmcomm.training.parameter_server.shared import Shared
from hbmcomm.training.together import ClosedByAll, leave

CHUNK_BYTES = 32 * 1024


class ParameterServer(ClosedByAll):
    """One job: the weights of a model, their optimiser, and the ranks that compute gradients.

    After Luo et al., "Parameter Hub" (SoCC 2018). Tensors are cut into chunks. Each chunk has one
    owner, which adds the workers' gradients in the order of their ranks, runs the optimiser while
    the sum is in its cache, and writes the new weights to every worker. All ranks of `comm` make
    the same calls; the constructor and `close` are collective. Jobs on different communicators
    are separate: in keys, in memory and in failures.

    The weights have the bits of `Optimizer.apply` on ((g0 + g1) + g2) + ..., scaled by
    1 / workers.

    Args:
        comm: The ranks of the job; with transport direct, owners and workers share memory, with
            any other they send messages of MPI. The job works on a duplicate.
        tensors: Shapes, or arrays (torch tensors as well): those of the first worker are the first
            weights of all. Shapes: the weights are zero at first. All are float32 here.
        optimizer: Equal on all ranks.
        chunk_bytes: The most bytes of a chunk; a multiple of 64.
        owners: "all": every rank is a worker and owns a share (colocated); or ranks that own
            chunks and are no workers (central).
        shared_weights: Workers read one array of weights; transport direct.
        fused: False: first add the gradients of a whole key, then optimise it; transport direct.
        pull: True: owners do not write weights to workers, which copy them; transport direct.
        beside: Use the arrays of this server instead of new ones. It has the same ranks, tensors
            and owners; only one of the two may be in a step.

    Attributes:
        gradients: One array for each tensor, to be filled before `push` or `step`. The arrays stay
            the same ones, so views of torch and NumPy stay valid. Empty on a rank that is no
            worker.
        weights: One array for each tensor; the program may read them between steps.
        all_gradients, all_weights: All of them in one dimension, each padded to 64 bytes.
        steps: The number of steps that are complete.
        shares: The bytes that each owner has.

    Raises:
        ValueError, TypeError: On every rank: arguments that cannot be used, or that differ.
        OutOfMemory: On this rank: there is no room for its arrays; PeerError on the others.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        tensors: Iterable[Any],
        optimizer: Optimizer,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        owners: Owners = "all",
        shared_weights: bool = False,
        fused: bool = True,
        pull: bool = False,
        beside: ParameterServer | None = None,
    ) -> None:
        self.optimizer, self.steps = optimizer, 0
        self._begun, self._pushed, self._is_closed = False, set[int](), False
        self._comm: Any = comm.Dup() if isinstance(comm, Communicator) else Communicator(comm)
        given, design = list(tensors), Design(shared_weights, fused, pull)
        try:
            asked = Asked(given, optimizer, chunk_bytes, owners, design)
            self._job, first = agreed(self._comm, asked)
        except (TypeError, ValueError):  # on every rank
            self._comm.Free()
            raise
        try:
            arrays = None if beside is None else (beside.all_gradients, beside.all_weights)
            self._way: Way = (
                Shared(self._comm, self._job, optimizer.states, design, arrays)
                if self._comm.transport == "direct"
                else Messages(self._comm, self._job, optimizer.states, arrays)
            )
        except BaseException as error:  # on this rank
            leave(self._comm, error)
            raise
        self.all_gradients: Floats = self._way.gradients
        self.all_weights: Floats = self._way.weights
        works = self._job.works
        self.shares: Mapping[int, int] = shares(self._job.chunks)
        self.gradients: Sequence[Floats] = self._job.views(self.all_gradients) if works else []
        self.weights: Sequence[Floats] = self._job.views(self.all_weights) if works else []
        if first is not None:
            self._assign(first)

    def _assign(self, given: Sequence[Floats]) -> None:
        """The first weights, from the first worker to all; collective."""
        root = self._job.workers[0]
        for key, shape in enumerate(self._job.shapes):
            values = np.zeros(shape, "float32")
            if self._comm.rank == root:
                values[...] = given[key]
            self._comm.Bcast(values, root)
            if self._job.works:
                self.weights[key][...] = values
            self._way.own(key, values)
        self._comm.Barrier()

    # ---- steps ----

    def push(self, key: int) -> None:
        """The gradient of a tensor is complete: owners may add it now, before `step`.

        Raises:
            TypeError: `key` is no whole number.
            ValueError: No such tensor, it was pushed in this step already, or this rank is no
                worker.
            PeerError: A rank died or left.
        """
        key = operator.index(key)
        if not 0 <= key < len(self.gradients):
            raise ValueError(
                f"push({key}): this rank has {len(self.gradients)} gradients; push one of these"
            )
        if key in self._pushed:
            raise ValueError(f"push({key}): pushed in this step already; call step() first")
        self._begin()
        self._pushed.add(key)
        self._way.push(key, 1)

    def step(self) -> None:
        """Complete a step: push what is not pushed, and wait for the new weights.

        An owner that is no worker updates its chunks.

        Raises:
            PeerError: A rank died or left; the job is unusable.
        """
        self.start()
        self._way.finish()
        self._end()

    def start(self) -> None:
        """Begin `step` without waiting for it; then call `is_done` until it is true, or `step`."""
        self._begin()
        for first, count in _runs(set(range(len(self.gradients))) - self._pushed):
            self._pushed.update(range(first, first + count))
            self._way.push(first, count)

    def is_done(self) -> bool:
        """Whether the step that `start` began is complete; advances it."""
        if self._begun and self._way.is_done():
            self._end()
        return not self._begun

    def _begin(self) -> None:
        if self._is_closed:
            raise HbmcommError("this parameter server is closed; make another one")
        if not self._begun:
            self._begun = True
            self._way.begin(self.steps + 1, self.optimizer)

    def _end(self) -> None:
        self.steps += 1
        self._begun = False
        self._pushed.clear()

    # ---- end ----

    def close(self) -> None:
        """Leave the job; collective. In the middle of a step, the other ranks get PeerError.

        Raises:
            PeerError: A rank died or left before.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._begun:
            self._abandon(HbmcommError("closed its parameter server in the middle of a step"))
            return
        self._way.close()
        self._comm.Free()

    def _abandon(self, error: BaseException) -> None:
        self._is_closed = True
        self._way.abandon(str(error))
        leave(self._comm, error)


def _runs(keys: set[int]) -> Iterator[tuple[int, int]]:
    """(first, count) of each run of successive numbers."""
    for key in sorted(keys):
        if key - 1 not in keys:
            end = key
            while end in keys:
                end += 1
            yield key, end - key


def serve(jobs: Iterable[tuple[ParameterServer, int]]) -> None:
    """Do steps of several jobs in one owner, each at the pace of its own workers.

    Args:
        jobs: Each with the number of steps to do.

    Raises:
        PeerError: A rank of a job died or left, once the other jobs have done their steps.
    """
    ends = {server: server.steps + steps for server, steps in jobs}
    lost: HbmcommError | None = None
    while ends:
        for server, end in [*ends.items()]:
            try:
                if server.steps < end:
                    server.start()
                    server.is_done()
                if server.steps >= end:
                    del ends[server]
            except HbmcommError as error:
                lost = lost or error
                del ends[server]
        os.sched_yield()
    if lost is not None:
        raise lost
