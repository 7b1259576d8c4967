"""What all ranks do together, or none of them: a failure of one rank becomes an error of all.

Each rank acts by itself and then tells the others how it went, so that no rank waits for one that
has given up. What ends a process, such as Ctrl-C, passes through.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from hbmcomm.errors import ArenaUnavailable, HbmcommError

T = TypeVar("T")

Allgather = Callable[[Any], Sequence[Any]]
"""Gives every rank the values of all, in the order of the ranks."""

TOO_LONG = (errno.ENOMEM, errno.EFBIG)
"""What the kernel says where a shorter segment may do."""


class Closed(Exception):
    """A way to share memory is closed, in words for all ranks."""

    def __init__(self, text: str, too_long: bool = False) -> None:
        super().__init__(text)
        self.too_long = too_long


class Problem(NamedTuple):
    """Why a rank failed, in a form that other ranks can read."""

    text: str
    error: Exception | None = None
    """What every rank is to raise; None: another way may be tried."""
    too_long: bool = False
    """Whether that way may work for shorter segments."""


def attempt(
    act: Callable[[], T], alike: tuple[type[Exception], ...] = (HbmcommError,)
) -> tuple[T | None, Problem | None]:
    """What `act` returns, or why it failed.

    Args:
        act: Talks to no other rank.
        alike: Errors that every rank is to raise; all others close one way of many.
    """
    try:
        return act(), None
    except alike as error:
        kind = type(error) if isinstance(error, HbmcommError) else ValueError
        return None, Problem(str(error), kind(str(error)))
    except Closed as error:
        return None, Problem(str(error), too_long=error.too_long)
    except OSError as error:
        return None, Problem(str(error), too_long=error.errno in TOO_LONG)
    except Exception as error:
        return None, Problem(f"{type(error).__name__}: {error}")


def first(problems: Sequence[Problem | None]) -> str | None:
    """Which rank failed first, by its number, and why; None where all are well.

    Raises:
        HbmcommError, ValueError: What the first rank that has such an error wants raised.
    """
    for rank, problem in enumerate(problems):
        if problem is not None and problem.error is not None:
            raise type(problem.error)(f"rank {rank}: {problem.text}")
    texts = (f"rank {rank}: {problem.text}" for rank, problem in enumerate(problems) if problem)
    return next(texts, None)


def together(allgather: Allgather, act: Callable[[], T]) -> list[T]:
    """What `act`, which talks to no other rank, returns on each rank.

    Raises:
        HbmcommError, ValueError: On every rank alike, of the first rank where it failed;
            ArenaUnavailable for errors of other types.
    """
    found = list(allgather(attempt(act)))
    refused = first([problem for _, problem in found])
    if refused is not None:
        raise ArenaUnavailable(refused)
    return [value for value, _ in found]
