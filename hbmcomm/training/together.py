"""What objects of several ranks share: ends, errors on all ranks, and waits that a death ends."""

from __future__ import annotations

import ctypes
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeVar

from mpi4py import MPI

from hbmcomm import HbmcommError

T = TypeVar("T")
_YIELD = 2e-3  # seconds of giving the CPU away between two tests, before this rank sleeps
_SHORTEST, _LONGEST = 20e-6, 200e-6  # seconds of its naps
_LOOK = 10e-3  # seconds of waiting between two looks for failures


class ClosedByAll(ABC):
    """Leaving its `with` block closes it, unless by an error: other ranks may have none."""

    @abstractmethod
    def close(self) -> None:
        """Free it; collective."""

    @abstractmethod
    def _abandon(self, error: BaseException) -> None:
        """Go without waiting for other ranks; those that wait for this one get an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)


def leave(comm: Any, error: BaseException) -> None:
    """End a communicator of hbmcomm without the other ranks: an error ended this one's part."""
    comm.__exit__(type(error), error, error.__traceback__)


def run_on_all(comm: MPI.Intracomm, act: Callable[[], T]) -> T:
    """The result of `act` on this rank, once it has succeeded on every rank; collective.

    Raises:
        HbmcommError, TypeError, ValueError: On every rank, that of the lowest rank that failed.
    """
    problem: Exception | None = None
    result: Any = None
    try:
        result = act()
    except (HbmcommError, TypeError, ValueError) as error:
        problem = error
    except Exception as error:  # such as one of torch
        problem = HbmcommError(f"{type(error).__name__}: {error}")
        problem.__cause__ = error
    for rank, failure in enumerate(comm.allgather(problem)):
        if failure is not None:
            raise type(failure)(f"rank {rank}: {failure}") from problem
    value: T = result
    return value


def keep_for_ever(memory: object) -> None:
    """Keep memory even when Python ends: MPI ends later, and may still write into it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))


class Patience:
    """One wait between tests: yields the CPU at first, then sleeps, and looks for failures.

    Args:
        look: Raises an error where the wait cannot end; called with the seconds of the wait.
    """

    def __init__(self, look: Callable[[float], None]) -> None:
        self._look = look
        self._began = self._looked = time.monotonic()
        self._nap = _SHORTEST

    def wait(self) -> None:
        now = time.monotonic()
        if now - self._began < _YIELD:
            os.sched_yield()
            return
        time.sleep(self._nap)
        self._nap = min(2 * self._nap, _LONGEST)
        if now - self._looked > _LOOK:
            self._looked = now
            self._look(now - self._began)
