"""A rank's end of the driver's orders: asleep in a read until it is this launch's turn.

They come by pipes or TCP (lines.py). Where the driver made neither, the launch conducts itself.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from experiments.programs.measure.lines import opened
from experiments.schedule.turns import NONE, Action, Answer, Order

TURN = "turn"
"""The file in which rank 0 records the current turn, before any rank begins it."""


def line_of(orders: Sequence[Order]) -> str:
    """Orders to be carried out one after the other, as one line."""
    return json.dumps([asdict(order) for order in orders]) + "\n"


def orders_of(line: str) -> list[Order]:
    """The inverse of line_of()."""
    return [Order(**each | {"action": Action(each["action"])}) for each in json.loads(line)]


class Orders:
    """The orders of one rank; `asleep`: seconds of waiting for them, and of the CPU meanwhile."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder, self._rank = folder, rank
        self.asleep = {"seconds": 0.0, "cpu": 0.0}

    def obey(self, carry_out: Callable[[Order], Answer]) -> None:
        """Carry out every order as it comes, until the one to leave.

        Raises:
            SystemExit: the driver is gone.
        """
        with (
            opened(self._folder, self._rank) as (lines, answers),
            (self._folder / TURN if self._rank == 0 else Path(os.devnull)).open("wb") as turn,
        ):
            for orders in self._batches(lines):
                answered = []
                for order in orders:
                    os.pwrite(turn.fileno(), f"{order.cell:8d}".encode(), 0)
                    answered.append(asdict(carry_out(order)))
                answers.write(json.dumps({"rank": self._rank, "answers": answered}) + "\n")
                answers.flush()
            os.pwrite(turn.fileno(), f"{NONE:8d}".encode(), 0)

    def _batches(self, lines: TextIO) -> Iterator[list[Order]]:
        while True:
            began, used = time.monotonic(), time.process_time()
            try:
                line = lines.readline()
            except OSError:  # the driver's node is lost
                line = ""
            self.asleep["seconds"] += time.monotonic() - began
            self.asleep["cpu"] += time.process_time() - used
            if not line:
                raise SystemExit("the driver of this campaign has ended")
            orders = orders_of(line)
            if orders[0].action is Action.LEAVE:
                return
            yield orders
