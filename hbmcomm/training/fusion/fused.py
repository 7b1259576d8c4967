"""Tensor fusion: gradients are submitted by name as they become ready, and reduced in few calls.

Owns the cycle: when ranks negotiate, and on which thread. The design is Horovod's (Sergeev and Del
Balso, arXiv:1802.05799), without a coordinator. `negotiation` decides what is ready, `batches` what
is reduced together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import DTypeLike, NDArray

from hbmcomm import Communicator, HbmcommError
from hbmcomm.training.fusion.batches import Plan, Reducer, planned
from hbmcomm.training.fusion.negotiation import Known, Negotiation, Round
from hbmcomm.training.fusion.submissions import Submissions, Work, missing
from hbmcomm.training.together import ClosedByAll, leave

Shape = int | Iterable[int]
FUSION_BYTES = {"direct": 2**20}
"""By transport: what stays in the cache between packing, reducing and unpacking."""
FUSION_BYTES_OF_MESSAGES = 64 * 2**20
"""FUSION_BYTES of other transports, where few calls count."""
SLICE_BYTES = {"direct": 4 * 2**20}
"""By transport: what one call reduces in place, so that the part of each rank stays in a cache."""
LEAST = 64  # bytes
CYCLE = 0.001  # seconds
PATIENCE = 60.0  # seconds


class FusedAllreduce(ClosedByAll):
    """Sums or means of tensors over all ranks, in place, in as few calls as it takes.

    Ranks may submit tensors in different orders. A tensor is reduced once all ranks have submitted
    its name. `buffers` makes tensors that need no packing. Collective: the constructor, `buffers`,
    `close` and the end of a `with` block.

    Args:
        comm: Any intracommunicator; a Communicator keeps its kind and transport. A duplicate of it
            is used, so `comm` is free for other calls.
        fusion_bytes: Most bytes that are packed for one call; None: by the transport.
        cycle: Seconds in which further tensors may become ready before a round of negotiation.
            `wait`, and `fusion_bytes` of ready tensors, begin one at once.
        overlap: Reduce on a thread of its own, while the program computes. False: in `wait`.
        mean: Divide the sums by the number of ranks.
        patience: Seconds after which a tensor that others did not submit is an error. It must not
            be shorter than the time between the first and the last tensor of a step. Without
            `overlap` it ends no wait for a rank that does not wait itself.

    Attributes:
        rounds: of negotiation so far.
        negotiation, reducer: count the exchanges, and the calls and bytes packed for them.

    Raises:
        HbmcommError: overlap, and MPI was started without support for several threads.
        ValueError: A limit is not positive.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        *,
        fusion_bytes: int | None = None,
        cycle: float = CYCLE,
        overlap: bool = True,
        mean: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        if (fusion_bytes is not None and fusion_bytes < LEAST) or cycle < 0 or patience <= 0:
            raise ValueError(
                f"fusion_bytes={fusion_bytes}, cycle={cycle}, patience={patience}: give at "
                f"least {LEAST} bytes, and seconds that are not negative"
            )
        if overlap and MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise HbmcommError(
                "overlap needs MPI_THREAD_MULTIPLE, which this MPI was not started with; pass "
                "overlap=False"
            )
        self._comm = comm.Dup() if isinstance(comm, Communicator) else Communicator(comm)
        transport = self._comm.transport
        default = FUSION_BYTES.get(transport, FUSION_BYTES_OF_MESSAGES)
        self._fusion_bytes = default if fusion_bytes is None else fusion_bytes
        self._splits = transport == "direct"  # it copies memory that ranks do not share
        self._cycle_seconds, self._mean, self._patience = cycle, mean, patience
        self.negotiation = Negotiation(self._comm, patience / 2)
        self.reducer = Reducer(self._comm, self._fusion_bytes, mean, SLICE_BYTES.get(transport))
        self._submissions = Submissions(self.reducer.place_of)
        self._plans: dict[tuple[Known, ...], Plan] = {}
        self._planned_for = 0
        self._pending: dict[str, Work] = {}
        self._pending_bytes = 0
        self._waiting, self._leaving = 0, False
        self._round_began: float | None = None
        """Until all ranks have joined the round."""
        self._given_up: list[str] = []
        """In this round, before all ranks joined it."""
        self._broken: BaseException | None = None
        self.rounds = 0
        lock = threading.Lock()
        self._has_work, self._has_results = threading.Condition(lock), threading.Condition(lock)
        self._thread: threading.Thread | None = None
        if overlap:
            self._thread = threading.Thread(target=self._serve, name="fusion", daemon=True)
            self._thread.start()

    def buffers(self, shapes: Iterable[Shape], dtype: DTypeLike = "float32") -> list[NDArray[Any]]:
        """Tensors of zeros, one after the other in one block of memory that the ranks share.

        Those that are ready together and are neighbours are one call, without a copy. All ranks
        must ask for the same shapes in the same order.

        Raises:
            OutOfMemory: This rank has less free.
        """
        model = np.dtype(dtype)
        dimensions = [np.broadcast_to(np.empty((), model), shape).shape for shape in shapes]
        sizes = [int(np.prod(shape, dtype=np.int64)) * model.itemsize for shape in dimensions]
        made = zip(self.reducer.block(sizes), dimensions, strict=True)
        return [memory.view(model).reshape(shape) for memory, shape in made]

    def submit(self, name: str, tensor: Any) -> Work:
        """Say that a tensor is ready on this rank; it must not be touched until it is reduced.

        Args:
            name: The same on all ranks.
            tensor: A NumPy array, or a torch tensor on the CPU; contiguous.

        Raises:
            TypeError, ValueError: The tensor cannot be reduced in place, or `name` is pending or
                no string.
            HbmcommError: Closed, or unusable since an earlier error.
        """
        array, signature = self._submissions.take(name, tensor)
        if self._mean and array.dtype.kind in "iu":
            raise TypeError(f"{name!r} holds {array.dtype}, which has no mean; pass mean=False")
        work = Work(self, name, array, signature)
        with self._has_work:
            if self._broken is not None or self._leaving:
                raise HbmcommError(
                    f"{name!r} cannot be submitted: {self._broken or 'this object was closed'}"
                )
            if name in self._pending:
                raise ValueError(f"{name!r} was submitted and is not reduced yet; wait for it")
            self._pending[name] = work
            self._pending_bytes += work.array.nbytes
            if len(self._pending) == 1 or self._is_urgent():
                self._has_work.notify()
        return work

    def wait(self) -> None:
        """Wait until all submitted tensors are reduced on this rank; errors as in `Work.wait`."""
        with self._has_work:
            pending = tuple(self._pending.values())
        self._wait_for(pending)

    def close(self) -> None:
        """Wait for all tensors and free the duplicate; collective.

        A tensor that a rank still waits for, and another that closes did not submit, is
        TensorMissing on the former.

        Raises:
            PeerError: A rank died or left before.
        """
        if self._leaving:
            return
        was_usable = self._broken is None
        try:
            self.wait()
        finally:
            with self._has_work:
                self._leaving = True
                self._has_work.notify()
            if self._thread is not None:
                self._thread.join()
            else:
                while self._broken is None and self._cycle():
                    pass
            if self._broken is None:
                self._comm.Free()
        if was_usable and self._broken is not None:
            raise self._broken

    def _abandon(self, error: BaseException) -> None:
        self._break(error)
        leave(self._comm, error)

    def _wait_for(self, works: tuple[Work, ...]) -> None:
        if self._thread is None:
            while not all(work.done for work in works):
                self._cycle()
        else:
            began = time.monotonic()
            with self._has_results:
                self._waiting += 1
                try:
                    self._has_work.notify()
                    while not self._has_results.wait_for(
                        lambda: all(work.done for work in works), self._patience_left(began)
                    ):
                        self._give_up_alone(works, began)
                finally:  # a signal's handler may raise
                    self._waiting -= 1
        for work in works:
            if work.error is not None:
                raise work.error

    def _patience_left(self, began: float) -> float:
        """Seconds until a wait that began then gives up, if no other rank joins the round."""
        left = self._patience
        if self._round_began is not None:
            left += max(began, self._round_began) - time.monotonic()
        return min(left, threading.TIMEOUT_MAX)

    def _give_up_alone(self, works: tuple[Work, ...], began: float) -> None:
        """Fail tensors where patience is over and another rank joins no round; with the lock."""
        if self._round_began is None or self._patience_left(began) > 0:
            return
        reason = f"another rank has submitted nothing for {self._patience:g} s"
        for work in works:
            if not work.done:
                self._given_up.append(work.name)
                self._end(work, missing(work.name, reason))
        self._has_results.notify_all()

    # ---- the cycle, on the thread where there is one ----

    def _is_urgent(self) -> bool:
        """Whether a round is due before the end of the cycle: no more tensors will come."""
        stops = self._leaving or self._broken is not None
        return stops or self._waiting > 0 or self._pending_bytes >= self._fusion_bytes

    def _serve(self) -> None:
        """On the thread, until all ranks close or one fails."""
        more = True
        while more:
            with self._has_work:
                self._has_work.wait_for(lambda: self._pending or self._is_urgent())
                self._has_work.wait_for(self._is_urgent, self._cycle_seconds)
                has_work = self._pending or self._leaving
            if self._broken is not None:
                return
            more = self._cycle() if has_work else True

    def _cycle(self) -> bool:
        """One round of negotiation, and the calls for what is ready; whether there may be more."""
        with self._has_work:
            works = dict(self._pending)
            leaving = self._leaving and not works
            now = self._round_began = time.monotonic()
        stalled = any(work.since and now - work.since > self._patience for work in works.values())
        signatures = {name: work.signature for name, work in works.items()}
        given_up: list[str] = []

        def joined() -> None:
            with self._has_work:
                self._round_began = None
                given_up.extend(self._given_up)
                self._given_up.clear()
            for name in given_up:
                works.pop(name, None)
                signatures.pop(name, None)

        try:
            self.rounds += 1
            outcome = self.negotiation.round(signatures, leaving, stalled, joined)
            if given_up:
                self._check_retracted(given_up, outcome.ready)
            self._reduce(outcome.ready, works)
        except BaseException as error:
            self._abandon(error)  # others would wait for this rank in the next round
            return False
        self._give_up(outcome, works, now)
        if not outcome.ready and not outcome.all_leave:
            time.sleep(self._cycle_seconds)  # ranks wait for different tensors
        return not outcome.all_leave

    def _reduce(self, ready: tuple[Known, ...], works: dict[str, Work]) -> None:
        if self._planned_for != self.negotiation.exchanges:  # signatures may have changed
            self._plans.clear()
            self._planned_for = self.negotiation.exchanges
        if ready not in self._plans:
            self._plans[ready] = planned(ready, self._fusion_bytes, self._splits)
        batches, mismatches = self._plans[ready]
        for name, mismatch in mismatches.items():
            self._finish([works[name]], mismatch)
        by_number = {known.number: works[known.name] for known in ready}
        arrays = {number: work.array for number, work in by_number.items()}
        for batch in batches:
            self.reducer.reduce(batch, arrays)
            self._finish([by_number[number] for number in batch.complete])

    def _check_retracted(self, given_up: list[str], ready: tuple[Known, ...]) -> None:
        """Whether all ranks know what this one gave up: not if no rank was late for the round."""
        if lost := [known.name for known in ready if known.name in given_up]:
            error = HbmcommError(
                f"this process stood still while other ranks submitted {', '.join(lost)}, so that "
                "it gave up; make another FusedAllreduce, with more patience"
            )
            raise error

    def _give_up(self, outcome: Round, works: dict[str, Work], now: float) -> None:
        """Fail what another rank will not submit."""
        for name, work in works.items():
            if work.done:
                continue
            work.since = work.since or now
            if outcome.some_leave:
                reason = "a rank has closed without it"
            elif name in outcome.missing and now - work.since > self._patience:
                ranks = ", ".join(map(str, outcome.missing[name]))
                reason = f"rank {ranks} did not in {self._patience:g} s"
            else:
                continue
            self._finish([work], missing(name, reason))

    def _finish(self, works: list[Work], error: BaseException | None = None) -> None:
        with self._has_results:
            for work in works:
                self._end(work, error)
            self._has_results.notify_all()

    def _end(self, work: Work, error: BaseException | None) -> None:
        work.error, work.done = error, True
        del self._pending[work.name]
        self._pending_bytes -= work.array.nbytes

    def _break(self, error: BaseException) -> None:
        """Fail everything that is pending, and all later calls."""
        with self._has_results:
            self._broken = self._broken or error
            for work in self._pending.values():
                work.error, work.done = error, True
            self._pending.clear()
            self._has_results.notify_all()
            self._has_work.notify()
