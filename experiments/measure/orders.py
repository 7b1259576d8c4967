"""A rank's end of the driver's orders: asleep in a read until it is this launch's turn.

The driver makes a pipe for each rank and one for all answers (experiments/channel.py). Where it
made none, the launch conducts itself.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from experiments.turns import Action, Answer, Order

ANSWERS = "answers"


def pipe_of(rank: int) -> str:
    """The name of the pipe that a rank's orders come by."""
    return f"orders.{rank}"


class Orders:
    """The orders of one rank.

    Attributes:
        asleep: seconds that it waited for orders, and of the CPU that it used meanwhile.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder, self._rank = folder, rank
        self.asleep = {"seconds": 0.0, "cpu": 0.0}

    def obey(self, carry_out: Callable[[Order], Answer]) -> None:
        """Carry out every order as it comes, until the one to leave.

        Raises:
            SystemExit: the driver is gone.
        """
        with (
            (self._folder / pipe_of(self._rank)).open("r") as pipe,
            (self._folder / ANSWERS).open("w") as answers,
        ):
            for order in self._orders(iter(pipe.readline, "")):
                answers.write(json.dumps(asdict(carry_out(order)) | {"rank": self._rank}) + "\n")
                answers.flush()

    def _orders(self, lines: Iterator[str]) -> Iterator[Order]:
        while True:
            began, used = time.monotonic(), time.process_time()
            line = next(lines, "")
            self.asleep["seconds"] += time.monotonic() - began
            self.asleep["cpu"] += time.process_time() - used
            if not line:
                raise SystemExit("the driver of this campaign has ended")
            order = Order.parse(line)
            if order.action is Action.LEAVE:
                return
            yield order


def are_given(folder: Path) -> bool:
    """Whether a driver gives a launch its turns."""
    return (folder / ANSWERS).exists()
