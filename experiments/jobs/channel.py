"""The driver's orders to the ranks of one launch, and their answers.

They go by pipes on one machine and by TCP between nodes.
"""

import contextlib
import json
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from experiments.jobs.pipes import Pipes
from experiments.jobs.sockets import Sockets
from experiments.processes import logs
from experiments.programs.measure.orders import TURN, line_of
from experiments.schedule.turns import FIRST, NONE, Action, Answer, Lost, Order

START_PATIENCE = 180.0  # seconds: buffers of many MiB are filled by ranks that may share CPUs
TURN_PATIENCE, SLACK = 8.0, 20
"""Seconds until a turn must have ended, beside SLACK times what its operations take."""
REASON_PATIENCE = 2.0  # seconds in which a launch that lost a rank ends
LONGEST = 1e6  # seconds that an operation may take as a rank says; patience follows from it
POLL = 0.05  # seconds between two looks whether a rank waits for orders
LOOK = 0.5  # seconds without an answer after which one looks whether the launch still runs

Check = Callable[[], None]
"""Raises Lost where the launch has ended."""


class Channel(contextlib.ExitStack):
    """Orders to the ranks of a launch; closed with the block."""

    def __init__(
        self,
        place: Path,
        ranks: int,
        check: Check,
        patience: float = START_PATIENCE,
        over_nodes: bool = False,
    ) -> None:
        """Make the driver's ends in the launch's folder, before the launch is started.

        Args:
            check: called while answers are waited for.
            patience: seconds until all ranks wait for orders, or have begun or ended a cell.
            over_nodes: whether ranks are on other nodes than this process.
        """
        super().__init__()
        self._place, self._ranks = place, ranks
        self._check, self._patience = check, patience
        self._ends = Sockets(place, ranks) if over_nodes else Pipes(place, ranks)
        self.push(self._ends)
        self._lines = deque[str]()
        self._seconds: dict[int, float] = {}  # that an operation of a cell takes

    def open(self) -> None:
        """Wait until every rank waits for orders.

        Raises:
            Lost: the launch ended before, or does not come that far.
        """
        deadline = time.monotonic() + self._patience
        while not self._ends.connect():
            self._check()
            if time.monotonic() > deadline:
                raise Lost(f"did not start within {self._patience:.0f} s")
            time.sleep(POLL)

    def ask(self, orders: Sequence[Order]) -> list[Answer]:
        """Have all ranks carry out orders, one after the other; the answers of rank 0.

        Nothing is heard of the ranks before they have carried out all of them: this process would
        take a CPU from those that are timed.

        Args:
            orders: all of one action.

        Raises:
            Lost: the launch ended, or does not answer in time.
            NodeLost: a node that it runs on no longer answers.
        """
        try:
            self._ends.send(line_of(orders))
        except OSError:
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
        while len(answers) < self._ranks:
            rank, found = self._read(self._line(deadline), len(orders))
            answers[rank] = found
        if action is Action.BEGIN:
            for order, answer in zip(orders, answers[0], strict=True):
                self._seconds[order.cell] = answer.seconds
        return answers[0]

    def at(self) -> int:
        """The number of the cell that rank 0 began last; NONE before the first."""
        recorded = re.fullmatch(r" *(\d{1,8})", logs.text(self._place / TURN))
        return int(recorded[1]) if recorded else NONE

    def _await_end(self) -> NoReturn:
        """A rank has ended: raise why, which its launch says when it ends as well."""
        deadline = time.monotonic() + REASON_PATIENCE
        while time.monotonic() < deadline:
            self._check()
            time.sleep(POLL)
        raise Lost("goes on without one of its ranks")

    def _read(self, line: str, count: int) -> tuple[int, list[Answer]]:
        """A rank, and what it says of each order; Lost where the line is none of a rank."""
        try:
            values = json.loads(line)
            rank, answers = values["rank"], [Answer(**each) for each in values["answers"]]
            known = rank in range(self._ranks) and len(answers) == count
            if known and all(map(_sound, answers)):
                return rank, answers
        except (ValueError, TypeError, LookupError, RecursionError):
            pass
        raise Lost(f"answers {line[:60]!a}, which no rank does: it was ended")

    def _line(self, deadline: float) -> str:
        """The next answer of any rank."""
        while not self._lines:
            try:
                found = self._ends.receive(LOOK)
            except OSError:
                self._await_end()
            self._lines += found
            if not found:
                self._check()
                if time.monotonic() > deadline:
                    raise Lost("does not answer: it was ended")
        return self._lines.popleft()


def _sound(answer: Answer) -> bool:
    """Whether the fields of an answer that came as JSON have their types and ranges."""
    flags = type(answer.tight) is type(answer.narrow) is bool
    numbers = type(answer.group) is int and type(answer.seconds) in (int, float)
    return flags and numbers and answer.group >= 0 and 0 <= answer.seconds < LONGEST
