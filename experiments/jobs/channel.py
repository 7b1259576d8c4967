"""The driver's orders to the ranks of one launch, and their answers.

They go by pipes on one machine and by TCP between nodes.
"""

import contextlib
import errno
import os
import select
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from experiments.jobs.sockets import Sockets
from experiments.measure.lines import ANSWERS, pipe_of, whole_lines
from experiments.measure.orders import TURN, answers_of, line_of
from experiments.model import plain_file
from experiments.schedule.turns import FIRST, NONE, Action, Answer, Lost, Order

ANSWER_BYTES = 65536
PRIVATE = 0o600  # a reader takes orders from the rank that they are for


class Pipes(contextlib.ExitStack):
    """Lines to the ranks of a launch and from them; closed with the block."""

    def __init__(self, place: Path, ranks: int) -> None:
        """Make the pipes in the launch's folder, before the launch is started."""
        super().__init__()
        self._paths = [place / pipe_of(rank) for rank in range(ranks)]
        self._orders: list[int] = []
        for path in (*self._paths, place / ANSWERS):
            os.mkfifo(path, PRIVATE)
        # For writing too: it is then never at its end, whichever rank ends.
        self._answers = os.open(place / ANSWERS, os.O_RDWR | os.O_NONBLOCK)
        self.callback(os.close, self._answers)
        self._part = b""

    def connect(self) -> bool:
        """Connect the ranks that wait for orders; whether all do.

        Raises:
            Lost: a rank, to which the folder may belong, has put something else in a pipe's place.
        """
        for path in self._paths[len(self._orders) :]:
            try:
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return False  # no reader yet
                if not path.parent.exists():  # the user removes the campaign
                    raise
                raise Lost(f"was ended, its pipe {path.name} has gone: {error.strerror}") from error
            self.callback(os.close, pipe)
            if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
                raise Lost(f"was ended, its pipe {path.name} is none any more")
            self._orders.append(pipe)
        return True

    def send(self, line: str) -> None:
        """Send a line to all ranks; OSError where one has ended."""
        for pipe in self._orders:
            os.write(pipe, line.encode())

    def receive(self, patience: float) -> list[str]:
        """The lines that ranks have sent, once there are some; none after `patience` seconds.

        Raises:
            ValueError: a rank sends no lines.
        """
        if not select.select([self._answers], [], [], patience)[0]:
            return []
        lines, self._part = whole_lines(self._part + os.read(self._answers, ANSWER_BYTES))
        return lines


START_PATIENCE = 180.0  # seconds: buffers of many MiB are filled by ranks that may share CPUs
TURN_PATIENCE, SLACK = 8.0, 20
"""Seconds until a turn must have ended, beside SLACK times what its operations take."""
REASON_PATIENCE = 2.0  # seconds in which a launch that lost a rank ends
TURN_BYTES = 100  # of the record of the turn, at most
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
            Lost: the launch ended, does not answer in time, or sends something else.
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
            counts = ((order.cell, (order.count + FIRST) * order.group) for order in orders)
            takes = sum(count * self._seconds.get(cell, 0.0) for cell, count in counts)
            patience = TURN_PATIENCE + SLACK * takes
        deadline = time.monotonic() + patience
        answers: dict[int, list[Answer]] = {}
        while len(answers) < self._ranks:
            try:
                rank, given = answers_of(self._line(deadline), self._ranks, len(orders))
            except ValueError as error:
                raise Lost(f"was ended, one of its ranks gives wrong answers: {error}") from error
            if rank in answers:
                raise Lost(f"was ended, its rank {rank} answers more than it is asked")
            answers[rank] = given
        if action is Action.BEGIN:
            for order, answer in zip(orders, answers[0], strict=True):
                self._seconds[order.cell] = answer.seconds
        return answers[0]

    def at(self) -> int:
        """The number of the cell that rank 0 began last; NONE before the first."""
        with contextlib.suppress(OSError, ValueError):  # what is there may be of anyone
            return int(plain_file.read(self._place / TURN, TURN_BYTES))
        return NONE

    def _await_end(self) -> NoReturn:
        """A rank has ended: raise why, which its launch says when it ends as well."""
        deadline = time.monotonic() + REASON_PATIENCE
        while time.monotonic() < deadline:
            self._check()
            time.sleep(POLL)
        raise Lost("goes on without one of its ranks")

    def _line(self, deadline: float) -> str:
        """The next answer of any rank."""
        while not self._lines:
            try:
                lines = self._ends.receive(LOOK)
            except OSError:
                self._await_end()
            self._lines += lines
            if not lines:
                self._check()
                if time.monotonic() > deadline:
                    raise Lost("does not answer: it was ended")
        return self._lines.popleft()
