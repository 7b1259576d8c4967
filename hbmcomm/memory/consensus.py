"""Steps that succeed on all ranks or on none: a failure of one rank becomes an error on every rank.

Each rank runs the step by itself and sends the outcome to the others, so that no rank waits for one
that has given up. What ends a process, such as Ctrl-C, passes through.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from hbmcomm.errors import HbmcommError

T = TypeVar("T")

Allgather = Callable[[Any], Sequence[Any]]
"""Gives every rank the values of all, in the order of the ranks."""

TOO_LONG = (errno.ENOMEM, errno.EFBIG)
"""Errors of the kernel after which a shorter segment may work."""


class SharingRefused(Exception):
    """A method of sharing memory does not work; the message is for all ranks."""

    def __init__(self, text: str, too_long: bool = False) -> None:
        super().__init__(text)
        self.too_long = too_long


class Problem(NamedTuple):
    """Why a rank failed, in a form that other ranks can read."""

    text: str
    error: str | None = None
    """The name of the error to raise on every rank; None: another method may be tried."""
    too_long: bool = False
    """Whether the method may work with shorter segments."""


def run_locally(
    act: Callable[[], T], raised_on_all: tuple[type[Exception], ...] = (HbmcommError,)
) -> tuple[T | None, Problem | None]:
    """The result of `act`, or why it failed.

    Args:
        act: Exchanges nothing with other ranks.
        raised_on_all: Errors to raise on every rank; all others only rule out one method.
    """
    try:
        return act(), None
    except raised_on_all as error:
        kind = type(error) if isinstance(error, HbmcommError) else ValueError
        return None, Problem(str(error), kind.__name__)
    except SharingRefused as error:
        return None, Problem(str(error), too_long=error.too_long)
    except OSError as error:
        return None, Problem(str(error), too_long=error.errno in TOO_LONG)
    except Exception as error:
        return None, Problem(f"{type(error).__name__}: {error}")


def first_problem(problems: Sequence[Problem | None]) -> str | None:
    """The lowest rank that failed and why, as text; None where none failed.

    Raises:
        HbmcommError, ValueError: The error of the lowest rank with one to raise on every rank.
    """
    for rank, problem in enumerate(problems):
        if problem is not None and problem.error is not None:
            raise _kind_of(problem.error)(f"rank {rank}: {problem.text}")
    texts = (f"rank {rank}: {problem.text}" for rank, problem in enumerate(problems) if problem)
    return next(texts, None)


def _kind_of(name: str) -> type[Exception]:
    """ValueError, or an error of this package; HbmcommError where it has none of this name."""
    kinds: list[type[Exception]] = [ValueError, HbmcommError]
    for kind in kinds:
        kinds += [cls for cls in kind.__subclasses__() if cls.__module__.startswith("hbmcomm.")]
    return next((kind for kind in kinds if kind.__name__ == name), HbmcommError)


def run_on_all(allgather: Allgather, act: Callable[[], T]) -> list[T]:
    """The result of `act`, which exchanges nothing with other ranks, on each rank.

    Raises:
        HbmcommError, ValueError: The same on every rank: that of the lowest rank that failed;
            HbmcommError for errors of other types.
    """
    outcomes = list(allgather(run_locally(act)))
    refused = first_problem([problem for _, problem in outcomes])
    if refused is not None:
        raise HbmcommError(refused)
    return [value for value, _ in outcomes]
