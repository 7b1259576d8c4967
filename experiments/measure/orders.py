"""A rank's end of the driver's orders: asleep in a read until it is this launch's turn.

They come by pipes or TCP (lines.py). Where the driver made neither, the launch conducts itself.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from experiments.measure.lines import opened
from experiments.schedule.turns import NONE, Action, Answer, Order

TURN = "turn"
"""The file in which rank 0 records the current turn, before any rank begins it."""


MOST_SECONDS, MOST_GROUP = 1e6, 2**30  # of an operation; of operations in an interval
SHOWN = 60  # characters of a line that cannot be read


def line_of(orders: Sequence[Order]) -> str:
    """Orders to be carried out one after the other, as one line."""
    return json.dumps([asdict(order) for order in orders]) + "\n"


def orders_of(line: str) -> list[Order]:
    """The inverse of line_of()."""
    return [Order(**fields | {"action": Action(fields["action"])}) for fields in json.loads(line)]


def line_of_answers(rank: int, answers: Sequence[Answer]) -> str:
    """A rank's answers to the orders of one line, as one line."""
    return json.dumps({"rank": rank, "answers": [asdict(answer) for answer in answers]}) + "\n"


def answers_of(line: str, ranks: int, count: int) -> tuple[int, list[Answer]]:
    """The inverse of line_of_answers(), for a line that may be of anyone in a launch's containers.

    Args:
        ranks: of the launch.
        count: of the orders.

    Raises:
        ValueError: it is something else.
    """
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        values = json.loads(line)
        rank, answers = values["rank"], [Answer(**fields) for fields in values["answers"]]
        is_rank = type(rank) is int and rank in range(ranks)
        if is_rank and len(answers) == count and all(map(_is_fit, answers)):
            return rank, answers
    raise ValueError(f"{line[:SHOWN]!r} is no answer of one of {ranks} ranks to {count} orders")


def _is_fit(answer: Answer) -> bool:
    """Whether its values are of their types, and such as are measured."""
    return (
        type(answer.seconds) in (int, float)
        and 0 <= answer.seconds <= MOST_SECONDS
        and type(answer.pace) in (int, float)
        and 0 <= answer.pace <= MOST_SECONDS
        and type(answer.group) is int
        and 1 <= answer.group <= MOST_GROUP
        and type(answer.tight) is bool
        and type(answer.narrow) is bool
    )


def obey(folder: Path, rank: int, carry_out: Callable[[Order], Answer]) -> dict[str, float]:
    """Carry out every order as it comes, until the one to leave.

    Returns:
        "seconds" of waiting for orders, and seconds of the "cpu" meanwhile.

    Raises:
        SystemExit: the driver is gone.
    """
    asleep = {"seconds": 0.0, "cpu": 0.0}
    with (
        opened(folder, rank) as (lines, answers),
        (folder / TURN if rank == 0 else Path(os.devnull)).open("wb") as turn,
    ):
        while (orders := _next(lines, asleep))[0].action is not Action.LEAVE:
            answered = []
            for order in orders:
                os.pwrite(turn.fileno(), f"{order.cell:8d}".encode(), 0)
                answered.append(carry_out(order))
            answers.write(line_of_answers(rank, answered))
            answers.flush()
        os.pwrite(turn.fileno(), f"{NONE:8d}".encode(), 0)
    return asleep


def _next(lines: TextIO, asleep: dict[str, float]) -> list[Order]:
    """The driver's next orders; `asleep` grows by the wait for them."""
    began, used = time.monotonic(), time.process_time()
    try:
        line = lines.readline()
    except OSError:  # the driver's node is lost
        line = ""
    asleep["seconds"] += time.monotonic() - began
    asleep["cpu"] += time.process_time() - used
    if not line:
        raise SystemExit("the driver of this campaign has ended")
    return orders_of(line)
