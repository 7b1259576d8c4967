"""The driver's end of the orders to one launch: a pipe for each of its ranks, and one for answers.

They are in the launch's own folder, which every environment lets its ranks see: no network, no
privilege. When the driver ends, however that may be, the kernel closes its ends, and the ranks that
sleep in a read end as well.
"""

import contextlib
import errno
import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from experiments.measure.orders import ANSWERS, pipe_of
from experiments.turns import FIRST, Action, Answer, Lost, Order

START_PATIENCE = 180.0  # seconds until all ranks of a launch wait for orders
PATIENCE = {
    Action.BEGIN: START_PATIENCE,  # buffers of many MiB are filled by ranks that may share CPUs
    Action.TURN: 8.0,
    Action.END: START_PATIENCE,
}
"""Seconds until an answer must have come, beside SLACK times what a turn's operations take."""
SLACK = 20
REASON_PATIENCE = 2.0  # seconds in which a launch that lost a rank ends
POLL = 0.05  # seconds between two looks whether a rank waits for orders
LOOK = 0.5  # seconds without an answer after which one looks whether the launch still runs
ANSWER_BYTES = 65536

Check = Callable[[], None]
"""Raises Lost where the launch has ended."""


class Channel(contextlib.ExitStack):
    """Orders to the ranks of a launch; closed with the block."""

    def __init__(self, place: Path, ranks: int, check: Check) -> None:
        """Make the pipes in the launch's folder, before the launch is started.

        Args:
            check: called while answers are waited for.
        """
        super().__init__()
        self._paths = [place / pipe_of(rank) for rank in range(ranks)]
        self._check = check
        self._orders: list[int] = []
        for path in (*self._paths, place / ANSWERS):
            os.mkfifo(path)
        # For writing too: it is then never at its end, whoever comes and goes.
        self._answers = os.open(place / ANSWERS, os.O_RDWR | os.O_NONBLOCK)
        self.callback(os.close, self._answers)
        self._lines = b""
        self._seconds = 0.0  # that an operation of the cell takes

    def open(self) -> None:
        """Wait until every rank waits for orders.

        Raises:
            Lost: the launch ended before, or does not come that far.
        """
        deadline = time.monotonic() + START_PATIENCE
        while len(self._orders) < len(self._paths):
            try:
                path = self._paths[len(self._orders)]
                self._orders.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                self.callback(os.close, self._orders[-1])
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads there yet
                    raise
                self._check()
                if time.monotonic() > deadline:
                    raise Lost(f"did not start within {START_PATIENCE:.0f} s") from None
                time.sleep(POLL)

    def ask(self, order: Order) -> Answer:
        """Have all ranks carry out an order; the answer of rank 0.

        Raises:
            Lost: the launch ended, or does not answer in time.
        """
        line = order.line().encode()
        for pipe in self._orders:
            try:
                os.write(pipe, line)
            except BrokenPipeError:
                self._await_end()
        answers: dict[int, Answer] = {}
        if order.action is Action.LEAVE:
            return Answer()
        takes = (order.count + FIRST) * order.group * self._seconds
        deadline = time.monotonic() + PATIENCE[order.action] + SLACK * takes
        while len(answers) < len(self._paths):
            values = self._line(deadline)
            rank = values.pop("rank")
            answers[rank] = Answer(**values)
        if order.action is Action.BEGIN:
            self._seconds = answers[0].seconds
        return answers[0]

    def _await_end(self) -> NoReturn:
        """A rank has ended: raise why, which its launch says when it ends as well."""
        deadline = time.monotonic() + REASON_PATIENCE
        while time.monotonic() < deadline:
            self._check()
            time.sleep(POLL)
        raise Lost("goes on without one of its ranks")

    def _line(self, deadline: float) -> dict[str, Any]:
        """The next answer of any rank."""
        while b"\n" not in self._lines:
            if select.select([self._answers], [], [], LOOK)[0]:
                self._lines += os.read(self._answers, ANSWER_BYTES)
                continue
            self._check()
            if time.monotonic() > deadline:
                raise Lost("does not answer: it was ended")
        line, _, self._lines = self._lines.partition(b"\n")
        values: dict[str, Any] = json.loads(line)
        return values
