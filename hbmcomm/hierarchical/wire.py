"""Messages between hosts, several exchanges in flight at once.

A rank that waits gives its CPU away, and then sleeps.

An exchange is a generator that yields the requests that it waits for, so that others go on
meanwhile.

Model: hierarchical/wire.pml
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from hbmcomm.hierarchical.between import Message, Step
from hbmcomm.hierarchical.threaded import is_in_flight
from hbmcomm.quantities import KIB

_TAGS = 1024
_MOST = 2**30  # bytes of one message of MPI
_LONG = 512 * KIB  # bytes from which on a message takes longer than asking its receiver
UNASKED = 60 * KIB if MPI.get_vendor()[0] == "Open MPI" else _LONG
"""Bytes that go without asking the receiver first: Open MPI's TCP asks from 64 KiB on, and the
answer is late where the receiver has no CPU."""
_ANSWERED = 64 * KIB  # bytes from which on a message takes longer than its answer
_YIELD = 2e-3  # seconds of giving the CPU away between two tests, before this rank sleeps
_YIELD_IN_FLIGHT = 100e-6  # the same while the program computes on another thread
_SHORTEST, _LONGEST = 20e-6, 200e-6  # seconds of its naps
_LOOK = 10e-3  # seconds of waiting between two looks for failures

_GROUPS = (
    ("Barrier",),
    ("Bcast", "Scatter"),
    ("Reduce", "Gather"),
    ("Allreduce", "Allgather", "Alltoall"),
)
"""Calls that MPI does among all ranks. Each group has its communicator: MPI would take messages of
one call for those of another."""

Exchange = Generator[list[MPI.Request], None, None]
Fold = Callable[[int, int, int, int], None]
"""Reduces: entries, address of the lower host's, of the higher host's, and of the result."""


class Packet(NamedTuple):
    """Bytes to or from a rank."""

    rank: int
    address: int
    nbytes: int


class Place(NamedTuple):
    """Where the entries of some steps are: `peers` are ranks by host."""

    peers: Sequence[int]
    host: int
    address: int
    entry: int
    fold: Fold | None = None


class Flight:
    """An exchange on its way.

    Args:
        before: The flight that must be over before this one begins.

    Attributes:
        requests: Those that it waits for; MPI makes each null once it is complete.
    """

    def __init__(self, exchange: Exchange, before: Flight | None) -> None:
        self._exchange, self._before = exchange, before
        self.requests: list[MPI.Request] = []
        self.is_over = False
        self.advance()

    def advance(self) -> bool:
        """Go on where all messages have come and gone; whether that was so."""
        if self.is_over or any(self.requests) or (self._before and not self._before.is_over):
            return False
        self._before = None
        self._go_on()
        return True

    def _go_on(self) -> None:
        try:
            self.requests = next(self._exchange)
        except StopIteration:
            self.requests, self.is_over = [], True


class Wire:
    """The messages of one rank.

    Args:
        comm: Only this object sends messages on it.
        look: Raises an error where a message cannot come any more; called while this rank waits,
            with the seconds since the last message.
        refuse_lost: Raises an error where news of a lost rank has come; waits for none. MPICH
            crashes where it sends to a process that is gone.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        look: Callable[[float], None],
        refuse_lost: Callable[[], None],
    ) -> None:
        self._comm, self._look, self._refuse_lost = comm, look, refuse_lost
        self._of_groups = [comm.Dup() for _ in _GROUPS]
        self._of_calls = {
            name: comm
            for names, comm in zip(_GROUPS, self._of_groups, strict=True)
            for name in names
        }
        self._flights: list[Flight] = []

    def fly(self, exchange: Exchange, in_turn: bool = False) -> Flight:
        """Begin an exchange.

        Args:
            in_turn: It begins when the one before is over. Messages of an exchange that only sends
                would share the link with all others under way: the first would arrive with the
                last.
        """
        before = self._flights[-1] if in_turn and self._flights else None
        self._flights.append(Flight(exchange, before))
        return self._flights[-1]

    def finish(self, flight: Flight) -> None:
        """Wait for an exchange; the others in flight go on as well.

        Raises:
            HbmcommError: A rank died or left.
        """
        patience = Patience(self._look)
        while not flight.is_over:
            if sum(each.advance() for each in self._flights):
                patience = Patience(self._look)
            elif not self._test() and not flight.is_over:
                patience.wait()
        self._flights.remove(flight)

    def _test(self) -> bool:
        """Look which messages are complete, in one call of MPI; whether any is.

        A call for each exchange would ask the network as often, and take the CPU from other ranks.
        """
        waited = [request for each in self._flights for request in each.requests if request]
        return bool(waited and MPI.Request.Testsome(waited))

    def run(self, exchange: Exchange) -> None:
        self.finish(self.fly(exchange))

    def collective(self, name: str, start: Callable[[MPI.Intracomm], MPI.Request]) -> None:
        """Do a nonblocking call of MPI, one of those in _GROUPS.

        Raises:
            HbmcommError: A rank died or left, or makes another call.
        """
        self._refuse_lost()
        request, patience = start(self._of_calls[name]), Patience(self._look)
        try:
            while not request.Test():
                patience.wait()
                self._refuse_lost()  # a test sends too: the next messages of MPI's algorithm
        except BaseException:
            _stranded.append((start, request))
            raise

    def strand(self) -> None:
        """Give up: the memory of messages that may still come stays as it is for ever."""
        _stranded.extend(self._flights)
        self._flights.clear()

    def free(self) -> None:
        """Free its communicators; collective."""
        for comm in (self._comm, *self._of_groups):
            comm.Free()

    # ---- exchanges ----

    def steps(self, steps: Iterable[Step], place: Place, tag: int = 0) -> Exchange:
        """An algorithm's steps on some entries.

        Args:
            tag: Exchanges between two ranks at the same time have different ones.
        """
        for step in steps:
            taken = [self._packet(place, each) for each in step.receives]
            held = [np.empty(each.nbytes, np.uint8) for each in taken] if step.folds else []
            into = [
                each._replace(address=memory.ctypes.data)
                for each, memory in zip(taken, held, strict=False)
            ]
            given = [self._packet(place, each) for each in step.sends]
            yield self.start(given, into or taken, tag)
            for message, own, came in zip(step.receives, taken, into, strict=False):
                assert place.fold is not None
                pair = (came.address, own.address)
                lower, higher = pair if message.host < place.host else pair[::-1]
                place.fold(own.nbytes // place.entry, lower, higher, own.address)
            if step.answered:
                yield self._answer(given, taken, tag)

    def packets(self, given: Sequence[Packet], taken: Sequence[Packet]) -> Exchange:
        """Some messages; empty ones are left out."""
        yield self.start(given, taken)

    def start(
        self, given: Sequence[Packet], taken: Sequence[Packet], tag: int = 0
    ) -> list[MPI.Request]:
        """Begin to send and receive."""
        self._refuse_lost()
        comm, tag = self._comm, tag % _TAGS
        found = [comm.Irecv(memory, rank, tag) for rank, memory in _messages(taken)]
        return found + [comm.Isend(memory, rank, tag) for rank, memory in _messages(given)]

    def _answer(
        self, given: Sequence[Packet], taken: Sequence[Packet], tag: int
    ) -> list[MPI.Request]:
        """Begin to answer long messages that have come, and to take the answers to those sent."""
        self._refuse_lost()
        comm, tag = self._comm, tag % _TAGS
        nothing: Any = [None, 0, MPI.BYTE]
        takers, givers = (
            [each.rank for each in packets if each.nbytes >= _ANSWERED]
            for packets in (given, taken)
        )
        found = [comm.Irecv(nothing, rank, tag) for rank in takers]
        return found + [comm.Isend(nothing, rank, tag) for rank in givers]

    @staticmethod
    def _packet(place: Place, message: Message) -> Packet:
        begin, end = message.entries
        address = place.address + begin * place.entry
        return Packet(place.peers[message.host], address, (end - begin) * place.entry)


class Patience:
    """One wait: looks at once, then gives the CPU away, then sleeps."""

    def __init__(self, look: Callable[[float], None]) -> None:
        self._look = look
        self._began = self._looked = time.monotonic()
        self._yields = _YIELD_IN_FLIGHT if is_in_flight() else _YIELD
        self._nap = _SHORTEST

    def wait(self) -> None:
        now = time.monotonic()
        if now - self._began < self._yields:
            os.sched_yield()
            return
        time.sleep(self._nap)
        self._nap = min(2 * self._nap, _LONGEST)
        if now - self._looked > _LOOK:
            self._looked = now
            self._look(now - self._began)


def _messages(packets: Iterable[Packet]) -> Iterable[tuple[int, list[Any]]]:
    for rank, address, nbytes in packets:
        most = UNASKED if nbytes <= _LONG else _MOST
        for begin in range(0, nbytes, most):
            length = min(most, nbytes - begin)
            memory: Any = MPI.buffer.fromaddress(address + begin, length)
            yield rank, [memory, length, MPI.BYTE]


_stranded: list[object] = []
"""What was given up: messages may still be written into its memory."""
