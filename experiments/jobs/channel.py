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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from experiments.programs.measure.orders import ANSWERS, TURN, line_of, pipe_of
from experiments.schedule.turns import FIRST, NONE, Action, Answer, Lost, Order

START_PATIENCE = 180.0  # seconds: buffers of many MiB are filled by ranks that may share CPUs
TURN_PATIENCE, SLACK = 8.0, 20
"""Seconds until a turn must have ended, beside SLACK times what its operations take."""
REASON_PATIENCE = 2.0  # seconds in which a launch that lost a rank ends
POLL = 0.05  # seconds between two looks whether a rank waits for orders
LOOK = 0.5  # seconds without an answer after which one looks whether the launch still runs
ANSWER_BYTES = 65536

Check = Callable[[], None]
"""Raises Lost where the launch has ended."""


class Channel(contextlib.ExitStack):
    """Orders to the ranks of a launch; closed with the block."""

    def __init__(
        self, place: Path, ranks: int, check: Check, patience: float = START_PATIENCE
    ) -> None:
        """Make the pipes in the launch's folder, before the launch is started.

        Args:
            check: called while answers are waited for.
            patience: seconds until all ranks wait for orders, or have begun or ended a cell.
        """
        super().__init__()
        self._paths = [place / pipe_of(rank) for rank in range(ranks)]
        self._check, self._patience = check, patience
        self._orders: list[int] = []
        for path in (*self._paths, place / ANSWERS):
            os.mkfifo(path)
        # For writing too: it is then never at its end, whichever rank ends.
        self._answers = os.open(place / ANSWERS, os.O_RDWR | os.O_NONBLOCK)
        self.callback(os.close, self._answers)
        self._lines = b""
        self._seconds: dict[int, float] = {}  # that an operation of a cell takes

    def open(self) -> None:
        """Wait until every rank waits for orders.

        Raises:
            Lost: the launch ended before, or does not come that far.
        """
        deadline = time.monotonic() + self._patience
        while len(self._orders) < len(self._paths):
            try:
                path = self._paths[len(self._orders)]
                self._orders.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                self.callback(os.close, self._orders[-1])
            except OSError as error:
                if error.errno != errno.ENXIO:  # no reader yet
                    raise
                self._check()
                if time.monotonic() > deadline:
                    raise Lost(f"did not start within {self._patience:.0f} s") from None
                time.sleep(POLL)

    def ask(self, orders: Sequence[Order]) -> list[Answer]:
        """Have all ranks carry out orders, one after the other; the answers of rank 0.

        Nothing is heard of the ranks before they have carried out all of them: this process would
        take a CPU from those that are timed.

        Args:
            orders: all of one action.

        Raises:
            Lost: the launch ended, or does not answer in time.
        """
        lines = line_of(orders).encode()
        for pipe in self._orders:
            try:
                os.write(pipe, lines)
            except BrokenPipeError:
                self._await_end()
        action = orders[0].action
        if action is Action.LEAVE:
            return [Answer()]
        patience = self._patience
        if action is Action.TURN:
            counts = ((each.cell, (each.count + FIRST) * each.group) for each in orders)
            takes = sum(count * self._seconds.get(cell, 0.0) for cell, count in counts)
            patience = TURN_PATIENCE + SLACK * takes
        deadline = time.monotonic() + patience
        answers: dict[int, list[Answer]] = {}
        while len(answers) < len(self._paths):
            values = self._line(deadline)
            answers[values["rank"]] = [Answer(**each) for each in values["answers"]]
        if action is Action.BEGIN:
            for order, answer in zip(orders, answers[0], strict=True):
                self._seconds[order.cell] = answer.seconds
        return answers[0]

    def at(self) -> int:
        """The number of the cell that rank 0 began last; NONE before the first."""
        place = self._paths[0].with_name(TURN)
        return int(place.read_text() or NONE) if place.exists() else NONE

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
