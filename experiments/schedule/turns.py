"""Contests one after the other, and in each the arms in turns, in random order.

A contest is one operation of one size over one kind of memory; its cells do it by a transport in a
form of its calls each. An arm times all of them in its turn, in random order too. Whatever disturbs
the machine for a moment disturbs all of them alike. Knows neither processes nor MPI: an arm is a
function that carries out orders and answers each.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise, product

from experiments.model.launch import Measurement

TURN = 0.02  # seconds that a cell is timed for in one turn of the slowest arm, at most
LEAST = 0.01  # seconds that a turn lasts, with all cells that an arm has in it, at least
FIRST = 2  # operations of a turn that do not count, at least; and a tenth of those that do
FEWEST_ROUNDS, ROUNDS, MOST_ROUNDS = 3, 10, 25  # turns of each entry; ROUNDS is aimed at


NONE = -1
"""The number of no cell."""


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
        cell: its number in the plan.
        count: of timed intervals.
        group: operations in each of them.
        tight: whether ranks start together from the barrier of shared memory, as every arm can.
        between: intervals before each of them that are not timed, so that the turn lasts LEAST.
    """

    action: Action
    cell: int = NONE
    count: int = 0
    group: int = 1
    tight: bool = False
    between: int = 0


@dataclass(frozen=True)
class Answer:
    """What rank 0 says of an order that was carried out.

    Attributes:
        seconds: after BEGIN: of one operation, the slowest rank's; 0 where the arm cannot measure
            the cell, or has none of that number.
        group: after BEGIN: operations that an interval needs for the clock.
        tight: after BEGIN: whether its ranks have a barrier in shared memory.
        narrow: after TURN: whether the median of this arm is known well enough.
        pace: after BEGIN: seconds from the beginning of one operation to that of the next, with
            the barrier and the rewriting of buffers between them.
    """

    seconds: float = 0.0
    group: int = 1
    tight: bool = False
    narrow: bool = False
    pace: float = 0.0


Arm = Callable[[Sequence[Order]], list[Answer]]
Entry = tuple[str, int]
"""The name of an arm and the number of one of its cells."""


class Lost(Exception):
    """An arm ended or does not answer; the text says which."""


def conduct(
    arms: Mapping[str, Arm],
    contests: Sequence[Sequence[int]],
    asked: Measurement,
    rng: random.Random,
    moved: Callable[[float], object] = lambda share: None,
    agreed: Callable[[int, int], int] = lambda contest, group: group,
) -> dict[str, Lost]:
    """Have all arms measure all cells, and leave.

    Args:
        contests: the numbers of the cells that take turns with each other, alike for all arms; an
            arm that lacks one answers that it cannot measure it.
        asked: time_cap is for each arm and cell. It bounds how long their turns take, with all
            that a turn has besides timed operations: where one operation fills a turn, two more
            precede it, and a cap on timed seconds would let the cell take three times as long.
        moved: given the share of contests that are done, 0 to 1.
        agreed: given the number of a contest and the operations that its intervals need for the
            clock; how many they have, which may be more, as in other blocks.

    Returns:
        The arms that were lost on the way; the others were measured all the same.
    """
    present, lost = dict(arms), {}

    def each(entries: Iterable[Entry], order: Callable[[int], Order]) -> dict[Entry, Answer]:
        cells: dict[str, list[int]] = {}
        for name, cell in sorted(entries):
            if name in present:
                cells.setdefault(name, []).append(cell)
        answers: dict[Entry, Answer] = {}
        for name in rng.sample(list(cells), len(cells)):
            drawn = rng.sample(cells[name], len(cells[name]))
            try:
                answered = present[name]([order(cell) for cell in drawn])
            except Lost as why:
                lost[name] = why
                del present[name]
            else:
                answers |= {(name, cell): a for cell, a in zip(drawn, answered, strict=True)}
        return answers

    for number, contest in enumerate(contests):
        moved(number / len(contests))
        begun = each(product(present, contest), lambda cell: Order(Action.BEGIN, cell))
        able = {entry: answer for entry, answer in begun.items() if answer.seconds}
        if not able:
            continue
        group = agreed(number, max(answer.group for answer in able.values()))
        tight = all(answer.tight for answer in able.values())
        pace = _pace(able, group)
        counts, fewest, rounds = _dealt(pace, asked, len(able) == 1)
        between = _between(able, counts, group)
        deadline = time.monotonic() + asked.time_cap * len(able)
        for turn in range(1, rounds + 1):
            orders = {
                cell: Order(Action.TURN, cell, counts[cell], group, tight, between[cell])
                for cell in pace
            }
            answers = each(able, orders.__getitem__)
            enough = all(answer.narrow for answer in answers.values())
            if turn >= fewest and (enough or time.monotonic() > deadline):
                break
        each(able, lambda cell: Order(Action.END, cell))
    each(((name, NONE) for name in present), lambda cell: Order(Action.LEAVE))
    return lost


def numbers(contests: Sequence[Sequence[object]]) -> list[range]:
    """As conduct() takes them: the cells of all contests, counted through."""
    ends = [*accumulate(map(len, contests), initial=0)]
    return [range(*bounds) for bounds in pairwise(ends)]


def _pace(able: Mapping[Entry, Answer], group: int) -> dict[int, float]:
    """Seconds of one interval of each cell, in the slowest arm."""
    pace = {cell: 0.0 for _, cell in able}
    for (_, cell), answer in able.items():
        pace[cell] = max(pace[cell], answer.seconds * group)
    return pace


def _dealt(
    pace: Mapping[int, float], asked: Measurement, alone: bool
) -> tuple[dict[int, int], int, int]:
    """Intervals in a turn of each cell, and the fewest and the most turns of all.

    The fewest hold min_iterations of each cell, the most come first: MOST_ROUNDS, max_iterations.
    An entry without company takes no turns: they only decide how often the clock is read.

    Args:
        pace: as _pace() gives it.
    """
    counts, most = dict[int, int](), MOST_ROUNDS
    for cell, seconds in pace.items():
        fitting = math.ceil(asked.time_cap / max(seconds, 1e-9))
        planned = min(asked.max_iterations, max(asked.min_iterations, fitting))
        if alone:
            return {cell: asked.min_iterations}, 1, planned // asked.min_iterations
        count = min(math.ceil(TURN / max(seconds, 1e-9)), max(1, planned // ROUNDS))
        counts[cell] = count
        most = min(most, math.ceil(planned / count), asked.max_iterations // count)
    fewest = math.ceil(asked.min_iterations / min(counts.values()))
    return counts, max(FEWEST_ROUNDS, fewest), most


def _between(able: Mapping[Entry, Answer], counts: Mapping[int, int], group: int) -> dict[int, int]:
    """Intervals before each timed one of each cell, so that a turn lasts LEAST in every arm.

    All cells of a turn have the same share of it. An entry without company takes no turns.
    """
    if len(able) == 1:
        return dict.fromkeys(counts, 0)
    shortest = dict.fromkeys(counts, math.inf)
    for (_, cell), answer in able.items():
        interval = max(answer.pace, answer.seconds) + (group - 1) * answer.seconds
        shortest[cell] = min(shortest[cell], max(interval, 1e-9))
    share = LEAST / min(Counter(name for name, _ in able).values())
    return {
        cell: max(0, math.ceil(share / (count * shortest[cell])) - 1)
        for cell, count in counts.items()
    }
