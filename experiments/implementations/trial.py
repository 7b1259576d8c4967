"""One cell made ready to be timed: its buffers in rotation, rewritten and checked."""

import contextlib
from collections.abc import Iterator, Sequence

from mpi4py import MPI

from experiments.implementations.contender import Contender
from experiments.measure import operations
from experiments.measure.operations import Array, Ready
from experiments.measure.timing import Call
from experiments.model.errors import WrongResult

UNSET = 127  # in a receive buffer before an operation that is checked


class Rotation:
    """Which slot is next, for all trials that use the same slots.

    With one count for each trial, a contender would read what another has just used, from the
    cache. Contenders do not advance alike, so no distance between their first slots keeps them
    apart.
    """

    def __init__(self) -> None:
        self.taken = 0  # operations so far, each of which took the next slot


class Trial:
    """An operation over slots of buffers that are used in turn.

    With one slot the cache stays warm. With many, a slot is rewritten half a round before its use,
    so that by then it has left the cache again.
    """

    def __init__(
        self,
        operation: str,
        comm: MPI.Intracomm,
        slots: Sequence[tuple[Array, Array]],
        pattern: Array,
        contender: Contender,
        rotation: Rotation | None = None,
    ) -> None:
        """Fill the first slots, unless another trial of the rotation has.

        Args:
            comm: of the ranks; checks go over it.
            pattern: what send buffers are filled with, as operations.fill() takes it.
            contender: makes what is timed over (send, recv).
            rotation: of all trials over these slots; left out: this is the only one.

        Raises:
            NotImplementedError: the contender has no such operation.
        """
        self._operation = operation
        self._comm = comm
        self._slots = slots
        self._pattern = pattern
        self._contender = contender
        self._ready: dict[int, Ready] = {}
        self._awake = False
        self._ahead = len(slots) // 2
        self._last = -1
        self._rotation = rotation or Rotation()
        self._of(self._rotation.taken)
        for number in range(self._ahead if not self._rotation.taken else 0):
            self._rewrite(number, number)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """What is made for the operation may be called in the block, and rests after it."""
        self._awake = True
        for ready in self._ready.values():
            ready.wake()
        yield
        for ready in self._ready.values():
            ready.rest()
        self._awake = False

    def prepare(self, iteration: int) -> Call:
        """Rewrite a send buffer; return the operation of this iteration, to be called."""
        self._last = iteration
        return self._of(self._take(iteration)).call

    def check(self) -> None:
        """Do the operation once more and compare its result with what it should be; a collective.

        Others may have used the same buffers since: what is in them proves nothing.

        Raises:
            WrongResult: on every rank when any rank holds a wrong element.
        """
        iteration = self._last + 1
        number = self._take(iteration)
        send, recv = self._slot(number)
        recv.fill(UNSET)
        self._rewrite(number, iteration)
        ready = self._of(number)
        if ready.wrong:
            wrong = ready.wrong()
        else:
            ready.call()
            ready.collect()
            wrong = operations.wrong(
                self._operation, self._comm, send, recv, self._pattern, iteration
            )
        wrong_anywhere = self._comm.allreduce(wrong)
        if wrong_anywhere:
            raise WrongResult(
                f"{self._operation} of {send.nbytes or recv.nbytes} bytes left {wrong_anywhere} "
                f"wrong elements in iteration {iteration}"
            )

    def close(self) -> None:
        """Let go of what was made for the operation; a collective."""
        for ready in self._ready.values():
            ready.close()
        self._ready.clear()

    def _take(self, iteration: int) -> int:
        """The number of the next operation, after the rewriting of the slot half a round ahead."""
        number = self._rotation.taken
        self._rotation.taken += 1
        self._rewrite(number + self._ahead, iteration + self._ahead)
        return number

    def _of(self, number: int) -> Ready:
        slot = number % len(self._slots)
        if slot not in self._ready:
            made = self._contender(self._operation, *self._slots[slot])
            if made is None:
                raise NotImplementedError(self._operation)
            self._ready[slot] = made
            if self._awake:
                made.wake()
        return self._ready[slot]

    def _slot(self, number: int) -> tuple[Array, Array]:
        return self._slots[number % len(self._slots)]

    def _rewrite(self, number: int, iteration: int) -> None:
        send = self._slot(number)[0]
        operations.fill(send, self._pattern, self._comm.rank, iteration)
