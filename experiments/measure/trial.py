"""One cell made ready to be timed: its buffers in rotation, rewritten and checked."""

from collections.abc import Callable, Sequence
from functools import partial

from mpi4py import MPI

from experiments.measure import operations
from experiments.measure.operations import Array
from experiments.measure.timing import Call


class WrongResult(Exception):
    """An operation left something other than it should have: the launch is worth nothing."""


class Trial:
    """An operation over slots of buffers that are used in turn.

    With one slot the cache stays warm. With many, a slot is rewritten half a round before its use,
    so that by then it has left the cache again.
    """

    def __init__(
        self,
        operation: str,
        transport: MPI.Intracomm,
        slots: Sequence[tuple[Array, Array]],
        pattern: Array,
        call: Callable[[Array, Array], Call] | None = None,
    ) -> None:
        """Fill the first slots.

        Args:
            call: what is timed over (send, recv); left out: the transport's own call.
        """
        self._operation = operation
        self._transport = transport
        self._slots = slots
        self._pattern = pattern
        self._call = call or partial(operations.call, operation, transport)
        self._ahead = len(slots) // 2
        self._last = 0
        for iteration in range(self._ahead):
            self._rewrite(iteration)

    def prepare(self, iteration: int) -> Call:
        """Rewrite a send buffer; return the operation of this iteration, to be called."""
        self._last = iteration
        self._rewrite(iteration + self._ahead)
        return self._call(*self._slot(iteration))

    def check(self) -> None:
        """Compare the result of the last iteration with what it should be; a collective.

        Raises:
            WrongResult: on every rank when any rank holds a wrong element.
        """
        wrong = operations.wrong(
            self._operation, self._transport, *self._slot(self._last), self._pattern, self._last
        )
        wrong_anywhere = self._transport.allreduce(wrong)
        if wrong_anywhere:
            raise WrongResult(
                f"{self._operation} of {self._slot(self._last)[0].nbytes} bytes left "
                f"{wrong_anywhere} wrong elements in iteration {self._last}; this launch is void"
            )

    def _slot(self, iteration: int) -> tuple[Array, Array]:
        return self._slots[iteration % len(self._slots)]

    def _rewrite(self, iteration: int) -> None:
        send = self._slot(iteration)[0]
        operations.fill(send, self._pattern, self._transport.rank, iteration)
