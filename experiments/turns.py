"""Cells one after the other, and in each the arms in turns, in random order.

Whatever disturbs the machine for a moment disturbs all arms alike. Knows neither processes nor MPI:
an arm is a function that carries out an order and answers it.
"""

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from experiments.spec import Measurement

TURN = 0.02  # seconds that the slowest arm is timed for in one turn, at most
FIRST = 2  # operations of a turn that do not count, at least; and a tenth of those that do
FEWEST_ROUNDS, ROUNDS, MOST_ROUNDS = 5, 10, 25  # turns of each arm in a cell; ROUNDS is aimed at


class Action(StrEnum):
    """What an arm's ranks can be asked to do."""

    BEGIN = "begin"  # make a cell ready, check its first result, warm up
    TURN = "turn"  # a few operations that are not timed, then those that are
    END = "end"  # check a cell's last result
    LEAVE = "leave"  # write what was found, and end


@dataclass(frozen=True)
class Order:
    """What all ranks of an arm do next.

    Attributes:
        cell: its number in the launch's plan.
        count: of timed intervals.
        group: operations in each of them.
        tight: whether ranks start together from the barrier of shared memory, as every arm can.
    """

    action: Action
    cell: int = -1
    count: int = 0
    group: int = 1
    tight: bool = False

    def line(self) -> str:
        """The order as one line."""
        return json.dumps(asdict(self)) + "\n"

    @staticmethod
    def parse(line: str) -> "Order":
        """The inverse of line()."""
        values = json.loads(line)
        return Order(**values | {"action": Action(values["action"])})


@dataclass(frozen=True)
class Answer:
    """What rank 0 says of an order that was carried out.

    Attributes:
        seconds: after BEGIN: of one operation, the slowest rank's; 0 where the arm cannot measure
            the cell.
        group: after BEGIN: operations that an interval needs for the clock.
        tight: after BEGIN: whether its ranks have a barrier in shared memory.
        narrow: after TURN: whether the median of this arm is known well enough.
    """

    seconds: float = 0.0
    group: int = 1
    tight: bool = False
    narrow: bool = False


Arm = Callable[[Order], Answer]


class Lost(Exception):
    """An arm ended or does not answer; the text says which."""


def conduct(
    arms: Mapping[str, Arm],
    cells: int,
    asked: Measurement,
    rng: random.Random,
    moved: Callable[[float], object] = lambda share: None,
) -> dict[str, Lost]:
    """Have all arms measure all cells, and leave.

    Args:
        cells: how many there are in the launches' plan, which is the same for all arms.
        asked: time_cap is for each arm and cell; warm-up is not counted.
        moved: given the share of cells that are done, 0 to 1.

    Returns:
        The arms that were lost on the way; the others were measured all the same.
    """
    present, lost = dict(arms), {}

    def each(names: Iterable[str], order: Order) -> dict[str, Answer]:
        answers = {}
        for name in rng.sample(sorted(names), len(list(names))):
            try:
                answers[name] = present[name](order)
            except Lost as why:
                lost[name] = why
                del present[name]
        return answers

    for cell in range(cells):
        moved(cell / cells)
        begun = each(list(present), Order(Action.BEGIN, cell))
        able = {name: answer for name, answer in begun.items() if answer.seconds}
        if not able:
            continue
        group = max(answer.group for answer in able.values())
        tight = all(answer.tight for answer in able.values())
        slowest = max(answer.seconds for answer in able.values())
        count, fewest, rounds = _dealt(slowest * group, asked, len(arms) == 1)
        deadline = time.monotonic() + asked.time_cap * len(able)
        for number in range(1, rounds + 1):
            turn = Order(Action.TURN, cell, count, group, tight)
            answers = each([name for name in able if name in present], turn)
            enough = all(answer.narrow for answer in answers.values())
            if number >= fewest and (enough or time.monotonic() > deadline):
                break
        each([name for name in able if name in present], Order(Action.END, cell))
    each(list(present), Order(Action.LEAVE))
    return lost


def _dealt(seconds: float, asked: Measurement, alone: bool) -> tuple[int, int, int]:
    """Intervals in a turn, and the fewest and the most turns, for intervals of so many seconds.

    An arm alone takes turns with nobody: they only say how often the clock is looked at.
    """
    fitting = math.ceil(asked.time_cap / max(seconds, 1e-9))
    planned = min(asked.max_iterations, max(asked.min_iterations, fitting))
    if alone:
        return asked.min_iterations, 1, planned // asked.min_iterations
    count = min(math.ceil(TURN / max(seconds, 1e-9)), max(1, planned // ROUNDS))
    rounds = min(math.ceil(planned / count), asked.max_iterations // count)
    return count, FEWEST_ROUNDS, min(MOST_ROUNDS, rounds)
