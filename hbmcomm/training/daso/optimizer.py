"""The optimizer of DASO: an optimizer of one rank, with the communication around its steps.

It combines schedule, communicators and exchanges of parameters between hosts, and holds the memory
that they share.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.training.daso.communicators import Communicators
from hbmcomm.training.daso.parameters import Array, Flat, Trained, adapted
from hbmcomm.training.daso.schedule import Schedule
from hbmcomm.training.together import ClosedByAll, run_on_all

_Form = tuple[list[tuple[tuple[int, ...], np.dtype[Any]]], dict[str, Any]]
"""Shapes and dtypes of parameters, and the numbers of a schedule."""


class Exchange:
    """A sum of parameters over one rank of each host, in flight or done.

    Args:
        batch: The batch of the epoch after which it began.
        turn: The number of the ranks that take part, inside their hosts.
        total: The sum, or this rank's part of it while it is in flight; None on ranks that do not
            take part.
    """

    def __init__(self, batch: int, turn: int, total: Flat | None) -> None:
        self.batch, self.turn, self.total = batch, turn, total
        self._request: MPI.Request | None = None

    def begin(self, across: Communicator, parameters: Sequence[Array]) -> None:
        """Start the sum; `across` has one rank of each host, all of which call this."""
        assert self.total is not None
        self.total.pack(parameters)
        self._request = across.Iallreduce(MPI.IN_PLACE, self.total.whole)

    def wait(self) -> None:
        """Wait until the sum is there.

        Raises:
            PeerError: A rank that takes part died or left.
        """
        if self._request is not None:
            self._request.Wait()
            self._request = None

    def merge(self, own: Sequence[Array], merged: Flat, waited: int, hosts: int) -> None:
        """Merge the sum with the parameters of now, on a rank that takes part.

        With x = `own`, the parameters of now, S = `waited`, the batches since the begin, and
        P = `hosts`, `merged` gets (2 S x + sum) / (2 S + P); with S = 0 that is the mean of the
        hosts.
        """
        self.wait()
        assert self.total is not None
        share = 1 / (2 * waited + hosts)
        for result, total, parameter in zip(merged.parts, self.total.parts, own, strict=True):
            np.multiply(parameter, 2 * waited * share, out=result)
            np.multiply(total, share, out=total)
            result += total


class Daso(ClosedByAll):
    """Wraps the optimizer of each rank; `step` and `end_epoch` are collective.

    At every batch gradients are averaged: over all ranks in blocking epochs of the schedule, else
    over the ranks of each host. In epochs between, parameters are summed over one rank of each
    host, in turns over the ranks of a host, while training goes on; the sum is merged some batches
    later. An epoch with exchanges, and each one after it, ends with the mean of the parameters of
    all hosts, so that all ranks then have the same network.

    The parameters of rank 0 are copied to all ranks at first. Hosts count alike, whatever number of
    ranks they have; on one host there is no exchange. Exchanges progress on a thread; where MPI was
    not started with MPI_THREAD_MULTIPLE they may rest until the next call of MPI.

    Args:
        optimizer: An optimizer of torch over tensors on the CPU, or `Arrays`.
        comm: Any intracommunicator.
        schedule: Equal on all ranks.
        host: A number that ranks of the same host share; left out: ranks that can share memory are
            on one host.

    Attributes:
        schedule: What is due when.
        host, hosts: The number of this rank's host, and how many hosts there are.

    Raises:
        PeerError: From any call: a rank died or left. This rank then leaves as well.
        ValueError: On every rank: ranks have different parameters or schedules, or parameters of
            several dtypes.
        TypeError: On every rank: `optimizer` is of another type.
    """

    def __init__(
        self, optimizer: Any, comm: MPI.Intracomm, schedule: Schedule, host: int | None = None
    ) -> None:
        self.schedule = schedule
        self._trained, own, form = run_on_all(comm, lambda: _described(optimizer, schedule))
        forms = comm.allgather(form)
        run_on_all(comm, lambda: _check(forms))
        self._communicators = Communicators(comm, host)
        self.host, self.hosts = self._communicators.host, self._communicators.hosts
        self._flying: Exchange | None = None

        def flat(part: Communicator) -> Flat:
            return Flat(own, part.empty(sum(parameter.size for parameter in own), own[0].dtype))

        with self._guarded():
            ranks = self._communicators
            self._everywhere, self._inside = flat(ranks.everyone), flat(ranks.inside)
            self._total = None if ranks.across is None else flat(ranks.across)
            self._everywhere.pack(own)
            ranks.everyone.Bcast(self._everywhere.whole)
            self._everywhere.unpack(own)

    def step(self) -> None:
        """Average the gradients, update the parameters, and end or begin an exchange if due."""
        with self._guarded():
            ranks, schedule = self._communicators, self.schedule
            if schedule.is_blocking:
                self._average(ranks.everyone, self._everywhere)
            else:
                self._average(ranks.inside, self._inside)
            self._trained.step()
            schedule.end_batch()
            if self._flying is not None and self._waited() >= schedule.wait:
                self._merge()
            if schedule.begins_exchange and self.hosts > 1:
                self._begin()

    def end_epoch(self, loss: float) -> float:
        """End an epoch; the mean of `loss` over all ranks, which decides the batches to skip."""
        with self._guarded():
            if not self.schedule.is_warming_up and self.hosts > 1:
                self._equalize()
            mean = self._communicators.mean(loss)
            self.schedule.end_epoch(mean)
            return mean

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes; it waits for an exchange in flight, but merges nothing.

        Parameters and the state of the wrapped optimizer are not in it.
        """
        exchange: dict[str, Any] | None = None
        if self._flying is not None:
            with self._guarded():
                self._flying.wait()
            total = self._flying.total
            exchange = {
                "batch": self._flying.batch,
                "turn": self._flying.turn,
                "total": None if total is None else total.whole.copy(),
            }
        return {"schedule": self.schedule.state_dict(), "exchange": exchange}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a Daso was; each rank gives the state that it had there.

        Restore parameters after Daso is made: hosts may have had different ones.
        """
        if self._flying is not None:
            with self._guarded():
                self._flying.wait()
        self._flying = None
        self.schedule.load_state_dict(state["schedule"])
        if (kept := state["exchange"]) is not None:
            self._flying = self._exchange(kept["batch"], kept["turn"])
            if self._flying.total is not None:
                np.copyto(self._flying.total.whole, kept["total"])

    def close(self) -> None:
        """Free the communicators; collective. An exchange in flight is waited for, not merged."""
        with self._guarded():
            if self._flying is not None:
                self._flying.wait()
            self._communicators.free()

    def _abandon(self, error: BaseException) -> None:
        self._communicators.abandon(error)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """An error ends this rank's part, which ranks that wait for it then notice."""
        try:
            yield
        except BaseException as error:
            self._communicators.abandon(error)
            raise

    def _average(self, comm: Communicator, flat: Flat) -> None:
        """Replace the gradients by their means over a communicator."""
        gradients = self._trained.gradients()
        flat.pack(gradients)
        comm.Allreduce(MPI.IN_PLACE, flat.whole)
        flat.unpack(gradients, 1 / comm.size)

    def _exchange(self, batch: int, turn: int) -> Exchange:
        takes_part = turn == self._communicators.number
        return Exchange(batch, turn, self._total if takes_part else None)

    def _begin(self) -> None:
        """Begin an exchange by the ranks that have the next turn."""
        schedule, ranks = self.schedule, self._communicators
        self._flying = self._exchange(schedule.batch, schedule.exchanges % ranks.groups)
        schedule.exchanges += 1
        if self._flying.total is not None and ranks.across is not None:
            self._flying.begin(ranks.across, self._trained.parameters())

    def _merge(self) -> None:
        """End the exchange: all ranks of this host get the merged parameters."""
        flying, own = self._flying, self._trained.parameters()
        assert flying is not None
        if flying.total is not None:
            flying.merge(own, self._inside, self._waited(), self.hosts)
        self._communicators.inside.Bcast(self._inside.whole, flying.turn)
        self._inside.unpack(own)
        self._flying = None

    def _waited(self) -> int:
        """Batches since the exchange began."""
        return self.schedule.batch - self._flying.batch if self._flying is not None else 0

    def _equalize(self) -> None:
        """All ranks get the mean of the hosts' parameters; what is in flight is merged before."""
        if self._waited():
            self._merge()
        if self._flying is None:
            self._begin()
        self._merge()


def _described(optimizer: Any, schedule: Schedule) -> tuple[Trained, list[Array], _Form]:
    """A network, its parameters, and what must be equal on all ranks."""
    trained = adapted(optimizer)
    own = trained.parameters()
    return trained, own, ([(array.shape, array.dtype) for array in own], dict(vars(schedule)))


def _check(forms: list[_Form]) -> None:
    """Raise ValueError unless ranks have equal schedules and parameters, in one floating dtype."""
    first, schedule = forms[0]
    for rank, (parameters, other) in enumerate(forms):
        if parameters != first:
            raise ValueError(
                f"rank {rank} has parameters {parameters} and rank 0 {first}: give all ranks "
                "the same network"
            )
        if other != schedule:
            raise ValueError(
                f"rank {rank} has the schedule {other} and rank 0 {schedule}: give all ranks "
                "the same"
            )
    dtypes = {dtype for _, dtype in first}
    if len(dtypes) != 1 or not all(np.issubdtype(dtype, np.floating) for dtype in dtypes):
        raise ValueError(
            f"parameters of the dtypes {sorted(map(str, dtypes))}: give those of one floating dtype"
        )
